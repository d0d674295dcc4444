// The static picture beside a widget: it stands in the output for readers without widgets, and goes where one is alive.

/** Hides the picture of that name while its widget is there; call what is returned to show it again. */
export function hidePicture(name: string): () => void {
  const outputs = [...document.getElementsByClassName(`tinyexplore-picture-${name}`)].map(
    (picture) => picture.closest<HTMLElement>(".jp-OutputArea-child, .output_area") ?? (picture as HTMLElement),
  );
  for (const output of outputs) output.style.display = "none";
  return () => {
    for (const output of outputs) output.style.removeProperty("display");
  };
}
