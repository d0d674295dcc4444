// Small choices of the user that the browser remembers, if it has storage.

const PREFIX = "tinyexplore.";

export function readSetting(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null; // a page from a file, or a notebook in a frame, may have no storage
  }
}

/** `value`: null removes the entry. */
export function saveSetting(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // without storage, the choice is not remembered
  }
}
