declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*.py" {
  const text: string;
  export default text;
}

declare module "core:shared" {
  export const shared: Record<string, object>;
}
