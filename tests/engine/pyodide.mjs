// Runs a module of this checkout by the Python that browsers have:   node pyodide.mjs MODULE [ARGUMENT...]
import { fileURLToPath } from "node:url";
import { loadPyodide } from "../../widgets/node_modules/pyodide/pyodide.mjs";

const python = await loadPyodide({
  env: { HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" },
  stdout: (line) => console.log(line),
  stderr: (line) => console.error(line),
});
python.mountNodeFS("/checkout", fileURLToPath(new URL("../..", import.meta.url)));
python.globals.set("arguments", python.toPy(process.argv.slice(2)));
try {
  python.runPython(`
    import runpy, sys
    sys.path.insert(0, "/checkout")
    sys.argv[:] = arguments
    runpy.run_module(sys.argv[0], run_name="__main__")
  `);
} catch (error) {
  console.error(error.message); // Node would show the line that threw it: all of Pyodide
  process.exitCode = 1;
}
