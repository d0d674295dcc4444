// Small choices of the reader that a browser remembers; without storage they are made again the next time.

const PREFIX = "tinyexplore.";

export function recall(name: string): string | null {
  try {
    return localStorage.getItem(PREFIX + name);
  } catch {
    return null; // a page from a file, or a notebook in a frame, may have no storage
  }
}

/** `value` null: forgotten. */
export function record(name: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + name);
    else localStorage.setItem(PREFIX + name, value);
  } catch {
    // then it is chosen again the next time
  }
}
