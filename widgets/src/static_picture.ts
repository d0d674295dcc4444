// The static picture beside a widget: it is in the output for readers without widgets, and hidden while a widget is
// active.

/** Hides the picture of this name while its widget is active; returns a function that shows it again. */
export function hidePicture(name: string): () => void {
  const outputs = [...document.getElementsByClassName(`tinyexplore-picture-${name}`)].map(
    (picture) => picture.closest<HTMLElement>(".jp-OutputArea-child, .output_area") ?? (picture as HTMLElement),
  );
  for (const output of outputs) output.style.display = "none";
  return () => {
    for (const output of outputs) output.style.removeProperty("display");
  };
}
