// Generated from tinyexplore/explore/tracefile/model.py by `python -m tinyexplore.explore.schema`. Do not edit.

export const TRACE_VERSION = 1;

/** A line of the user's code. id: its row. source: the file, an index of `Trace.sources`. line: the line number, from 1. function: the name of the function. span: (line, column, line, column): start and end of the expression in the source; columns count characters from 0. For a method call, the object is excluded. None before Python 3.11. */
export interface Frame {
  id: number;
  source: number;
  line: number;
  function: string;
  span: [number, number, number, number] | null;
}

/** A file of the user, or a notebook cell, with its text. id: its row. name: the path of the file, or the name of the cell. text: the whole text. */
export interface Source {
  id: number;
  name: string;
  text: string;
}

/** One IR value. id: its row. kind: a level of the trace's dialect; "lazybuffer" or "uop" where the trace has no dialect. op: the operation. src: its operands, in order. dtype: the element type. shape: the shape of a LazyBuffer, symbolic sizes as text; None for a UOp. arg: the argument of the operation, as text. digest: equal for equal content, also in other traces. user: the line of the user's code, None if unknown. label: the first line of its box: "LOAD", "ADD". detail: the second line of its box: shape, index, constant. group: its role, which gives the color: "memory", "reduce", "loop", "alu", "const", "movement", "control" or "buffer". calls: the public functions that created a LazyBuffer, the user's own call first: ("softmax", "max"). name: the name of a LazyBuffer in the user's Python: "x", "model.l1.weight"; "" for none. scope: the module that created a LazyBuffer; None for none. backward: whether it belongs to the gradient of that module. */
export interface Node {
  id: number;
  kind: string;
  op: string;
  src: number[];
  dtype: string;
  shape: (number | string)[] | null;
  arg: string;
  digest: string;
  user: number | null;
  label: string;
  detail: string;
  group: string;
  calls: string[];
  name: string;
  scope: number | null;
  backward: boolean;
}

/** A module of the user (`model`, its `layers[0]`): an object that holds Tensors and whose methods created LazyBuffers. id: its row. name: the name of the variable, or of the attribute of `parent`. kind: the name of its class. parent: the module that contains it, None for an outermost module. parameter_bytes: the size of its own Tensors, in bytes. */
export interface Scope {
  id: number;
  name: string;
  kind: string;
  parent: number | null;
  parameter_bytes: number;
}

/** The cost of a module, including the modules inside it; `Trace.modules()` gives the rows as a tree. The first row is the whole trace. If several modules are fused into one kernel, its time is divided among them by the elements that each computes. The times of the rows inside a row therefore add up to its time. id: the row. parent: the row of the module around it, None for the whole trace. scope: the module, None for the whole trace and for work outside of modules. time_us: its share of the kernels' median times, in microseconds. backward_us: the part of `time_us` for gradients, in microseconds. parameter_bytes: the size of its Tensors, in bytes. result_bytes: the size of the buffers that kernels stored for it, in bytes. kernels: the kernels that compute a part of it. */
export interface ModuleCost {
  id: number;
  parent: number | null;
  scope: number | null;
  time_us: number;
  backward_us: number;
  parameter_bytes: number;
  result_bytes: number;
  kernels: number[];
}

/** The figures of one part of the pipeline. place: the key of the part. title: the display name of the part. words: the counts of the part, as text. time_us: the time of the part in microseconds, 0 if it takes none. */
export interface Figure {
  place: string;
  title: string;
  words: string;
  time_us: number;
}

/** The figures of a whole trace, or of one kernel. kernel: the kernel, None for the whole trace. parts: the parts of the pipeline, in order. compile_us: the sum of all parts except the run, in microseconds. search_us: the time of searches and their compilations, in microseconds; no part includes it. run_us: one run of each kernel, the sum of the medians, in microseconds. firings: how many times a rule was applied in `passes`. passes: the rewrite passes: stages that receive a graph and contain no stage. code: the last stage that generated code. summary: the times of all kernels, as parts of one line; empty for one kernel. */
export interface Figures {
  kernel: number | null;
  parts: Figure[];
  compile_us: number;
  search_us: number;
  run_us: number;
  firings: number;
  passes: number[];
  code: number | null;
  summary: string[];
}

/** A timed kernel in the roofline plot. kernel: the id of the kernel. flops_per_byte: arithmetic intensity: operations for each byte that it reads or writes. gflops: the measured speed, in 10⁹ operations a second. attainable: the attainable speed under its roof, in GFLOP/s; None without a roof. limit: the ceiling that limits it: "memory", "arithmetic", or "" without a roof. ceiling: the name of that ceiling. time_us: the median of its samples, in microseconds. text: the point as text. */
export interface RooflinePoint {
  kernel: number;
  flops_per_byte: number;
  gflops: number;
  attainable: number | null;
  limit: string;
  ceiling: string;
  time_us: number;
  text: string;
}

/** A ceiling in the roofline plot. name: the name of the ceiling. kind: "memory" or "arithmetic". rate: the rate, in GB/s or GFLOP/s. */
export interface RooflineCeiling {
  name: string;
  kind: string;
  rate: number;
}

/** The timed kernels of a trace under the ceilings of the machine. points: one point per kernel, except for kernels without floating-point arithmetic. ceilings: the ceilings of the kernels' roofs, each once. note: the origin of the ceilings, and which kernels have no point. */
export interface Roofline {
  points: RooflinePoint[];
  ceilings: RooflineCeiling[];
  note: string;
}

/** A stage, or a launch with the median of its samples, as an interval of time. Spans of one row are nested or follow one another. row: the number of its row. name: the name of the stage or the kernel. started_us: its start, in microseconds since the trace began. elapsed_us: its length in microseconds, without the work of other threads for it. depth: how many spans of its row contain it. kernel: the kernel that it belongs to, None for none. stage: the stage, None for a launch. */
export interface TimelineSpan {
  row: number;
  name: string;
  started_us: number;
  elapsed_us: number;
  depth: number;
  kernel: number | null;
  stage: number | null;
}

/** The lifetime of a buffer, from allocation to deallocation. buffer: the id of the buffer. name: its name, data type and size. bytes: its size in bytes. started_us: when it was allocated, in microseconds; 0 if that was before the trace. ended_us: when it was freed, in microseconds; the end of the trace if it was not freed. lane: lifetimes in one lane do not overlap; None for a buffer that is older than the trace. */
export interface BufferLifetime {
  buffer: number;
  name: string;
  bytes: number;
  started_us: number;
  ended_us: number;
  lane: number | null;
}

/** The stages, launches and buffers of a trace on a time axis. rows: (number, name) of each row, from top to bottom. spans: the stages and launches. memory: (microsecond, bytes allocated from then on), in order; older buffers count from 0 on. lives: the lifetimes of the buffers, by the time of allocation. end_us: the end of the last span, in microseconds. */
export interface Timeline {
  rows: [number, string][];
  spans: TimelineSpan[];
  memory: [number, number][];
  lives: BufferLifetime[];
  end_us: number;
}

/** The scheduler's decision on an edge between LazyBuffers, direct or through movement operations. src: the LazyBuffer that `dst` reads. dst: the LazyBuffer that reads `src`. mark: "fused": `src` is computed in the kernel of `dst`. "cut": one kernel stores `src`, another one loads it. "again": several kernels compute `src`. "read": `src` was in memory already. illegal: why a cut edge cannot be joined, or a joined edge cannot be cut; "" if the change is legal. */
export interface FusionEdge {
  src: number;
  dst: number;
  mark: string;
  illegal: string;
}

/** The standalone script of a kernel, without the texts that a page stores already. The script is `texts[0]`, the text that `inserts[0]` names, `texts[1]`, and so on. kernel: the id of the kernel. texts: the parts of the script, one more than `inserts`. inserts: "shared" (the code common to all scripts), or the language of a listing of the kernel. */
export interface KernelScript {
  kernel: number;
  texts: string[];
  inserts: string[];
}

/** A rewrite rule, with its source code. id: its row. name: the name of the rule. law: the law that the rule states, as text. doc: the docstring of the rule. file: the file that defines the rule. line: the first line of the definition, from 1. text: the source code of the rule. */
export interface RuleInfo {
  id: number;
  name: string;
  law: string;
  doc: string;
  file: string;
  line: number;
  text: string;
}

/** A transform: a pass over whole graphs, with its source code. id: its row. name: the name of the pass. law: the effect of the pass, as text. file: the file that defines its function. line: the first line of the function, from 1. text: the source code of its function. */
export interface Transform {
  id: number;
  name: string;
  law: string;
  file: string;
  line: number;
  text: string;
}

/** One change in a stage. A rewrite pass has one step for each firing. A transform has one step for the whole graph, or none if nothing changed. rule: the rule that fired; None if a node was rebuilt because its sources changed. before: the node that was replaced. after: the replacement. at_us: when the change happened, in microseconds since the stage began. */
export interface Step {
  rule: number | null;
  before: number;
  after: number;
  at_us: number;
}

/** Two numbers that a heuristic or the scheduler compared. what: the name of the quantity. value: the value of the quantity. bound: the limit. over: whether the value is above the limit. */
export interface NumberComparison {
  what: string;
  value: number;
  bound: number;
  over: boolean;
}

/** The scheduler's decision on a LazyBuffer, and its reason. node: the LazyBuffer. decision: "realize", "fuse", "duplicate", "keep", "view", "split", "merge" or "hoist". reason: the reason, as text. compared: the numbers that the scheduler compared, in that order. legality_error: why fusing the node into its consumers is illegal; "" if it is legal, at any cost. */
export interface Decision {
  node: number;
  decision: string;
  reason: string;
  compared: NumberComparison[];
  legality_error: string;
}

/** The effect of a kind of opt. id: its row. name: the name of the kind. words: the effect, as text. before: a loop nest before the opt. after: the same loop nest after it. */
export interface OptEffect {
  id: number;
  name: string;
  words: string;
  before: string;
  after: string;
}

/** An opt that was proposed for a kernel. opt: the opt, as text. applied: whether it was applied; if not, it was rejected. reason: why it was applied, or why it is illegal. laws: the effect of its kind, as ids of `Trace.laws`. axis: the axis that it changes, with the size before the opt: "g1 of 32"; "" if it was rejected. made: the axes that it created. */
export interface OptStep {
  opt: string;
  applied: boolean;
  reason: string;
  laws: number[];
  axis: string;
  made: string[];
}

/** The scores of the options between which a heuristic chose. what: the quantity that the scores measure. options: (option, score) of each. chosen: the option that was chosen, "" for none. least: whether the lowest score is the best. */
export interface OptionScores {
  what: string;
  options: [string, number][];
  chosen: string;
  least: boolean;
}

/** One heuristic of the default schedule, in the order in which they run. name: the name of the heuristic. law: which opts it proposes, when and why. settled_by: the earlier heuristic that made this one unnecessary; "" if it ran. compared: the numbers that it compared. weighed: the scores from which it chose. opts: the opts that it proposed, as positions in the opts of the stage. */
export interface Choice {
  name: string;
  law: string;
  settled_by: string;
  compared: NumberComparison[];
  weighed: OptionScores[];
  opts: number[];
}

/** One candidate of a search. opts: the opts applied to the kernel. best_us: its shortest time in microseconds; None if it failed. note: why it failed, or the source of the time if it was not measured here. */
export interface Candidate {
  opts: string[];
  best_us: number | null;
  note: string;
}

/** The result of a search. The default schedule and the best candidate are timed alternately. They are the same if no candidate was faster. before_us: time of the default schedule in microseconds; None if it could not be measured. after_us: time of the best candidate in microseconds; None if it could not be measured. tried: the number of candidates that were measured. reason: the result, as text. */
export interface Search {
  before_us: number | null;
  after_us: number | null;
  tried: number;
  reason: string;
}

/** One stage of the compiler. id: its row. name: "schedule", "optimize", "lower", a pass's name, "linearize", "render", "compile", "run", …. parent: the stage that contains it, None for an outermost stage. kernel: the kernel that it processed, None for all kernels. before: the root nodes of its input graph; several for a schedule. after: the root nodes of its output graph. started_us: microseconds since the trace began. elapsed_us: its time in microseconds, including the work of other threads for it. steps: the firings of a rewrite pass, in order. decisions: the scheduler's decisions. opts: the opts that were proposed, in order. candidates: the candidates that a search timed, in order. search: the result of the search, None without one. thread: 0 for the main thread, else the number of a compiler thread. transform: the transform that this stage ran, None for other stages. choices: the heuristics that chose the opts, in order. */
export interface Stage {
  id: number;
  name: string;
  parent: number | null;
  kernel: number | null;
  before: number[];
  after: number[];
  started_us: number;
  elapsed_us: number;
  steps: Step[];
  decisions: Decision[];
  opts: OptStep[];
  candidates: Candidate[];
  search: Search | null;
  thread: number;
  transform: number | null;
  choices: Choice[];
}

/** Provenance: the compiler derived node `dst` from node `src`. src: the earlier node. dst: the node derived from it. how: "rewrite", "rebuild", the name of a transform, or the word of a `NodeDerived` event. stage: the stage that created `dst`, None if unknown. */
export interface Link {
  src: number;
  dst: number;
  how: string;
  stage: number | null;
}

/** A line of a listing. text: the text, without the line end. nodes: the UOps from which the renderer wrote this line. */
export interface Line {
  text: string;
  nodes: number[];
}

/** A line of the program text after a stage. text: the text of the line. nodes: the nodes that this line represents or derives from. origin: the line of the previous text, from 0, that it derives from. */
export interface TextLine {
  text: string;
  nodes: number[];
  origin: number | null;
}

/** The text of the compiled program after a stage, such as LLVM IR after one of LLVM's passes. id: the row. stage: the stage that produced this text. language: a key of the dialect's languages. lines: the lines of the text. title: the name of the text, if a stage has several texts. before: the id of the text to compare it with, None for the first text. */
export interface StageText {
  id: number;
  stage: number;
  language: string;
  lines: TextLine[];
  title: string;
  before: number | null;
}

/** A block, a computation or a function of another compiler's program. id: the row. name: its name in that compiler. kind: "block", "computation", "function", or another word of the compiler. nodes: the nodes directly in it. parent: the region that contains it. */
export interface Region {
  id: number;
  name: string;
  kind: string;
  nodes: number[];
  parent: number | null;
}

/** A loop-carried operand: it is defined at or after its user. src: the operand, the next value of `dst`. dst: the user: a phi, or a block argument. */
export interface BackEdge {
  src: number;
  dst: number;
}

/** An operation that another library computed between the kernels, such as one of PyTorch's ATen. node: its first result. name: the name of the operation: "aten.polygamma". time_us: the time of its only call, in microseconds. */
export interface OutsideOperation {
  node: number;
  name: string;
  time_us: number;
}

/** A level of a compiler's IR: one kind of nodes. kind: the value of `Node.kind`. name, plural: the display name of one node, and of several. role: "tensors" for the graph of the whole program, "program" for the graph of a stage. "lines": the nodes are in no graph, and only connect lines of texts with lines of Python. */
export interface Level {
  kind: string;
  name: string;
  plural: string;
  role: string;
}

/** A language of listings and texts. key: the key that listings and texts store. name: the display name. */
export interface Language {
  key: string;
  name: string;
}

/** The vocabulary of a compiler's trace, and the panels that it supports. compiler: the name of the compiler. version: the version that was recorded, "" if unknown. levels: the kinds of its nodes. languages: the languages of its listings and texts. panels: the panels that it supports; all others are absent. notes: the parts of the dump that could not be read. */
export interface Dialect {
  compiler: string;
  version: string;
  levels: Level[];
  languages: Language[];
  panels: string[];
  notes: string[];
}

/** One listing of one kernel. id: its row. kernel: its kernel. language: "uops", "c", "llvm", "llvm-opt", "asm", "python", …. lines: its lines, in order. effort: LLVM's optimization level for this program: "full", "light" or "least"; "" for other languages. branches: whether LLVM also simplifies branches, at a level that omits this by default. */
export interface Program {
  id: number;
  kernel: number;
  language: string;
  lines: Line[];
  effort: string;
  branches: boolean;
}

/** One kernel: what it computes, its opts, its loops and its cost. id: its row. name: the name of the program. device: the device that runs it. roots: the LazyBuffers that it stores. nodes: all LazyBuffers fused into it. buffers: its arguments, in order. opts: the opts that were applied, in order. axes: (name, kind, size) of each loop, outermost first; a symbolic size is its arithmetic, as text. flops: floating-point operations of one run. bytes_moved: bytes of the elements that it reads and writes, each element once. compile_us: its compile time, in microseconds. cached: whether its program came from a cache. same_as: an earlier kernel whose program it reuses, else None. calls: the user's calls that created its LazyBuffers, each once. known: the cache that a run without a recorder would have used: "in this process", "on disk", or "" for none. code_bytes: the size of its machine code in bytes, 0 if unknown. not_run: why it has no times: this machine cannot execute it, or sampling takes too long; "" if it has times. nest: its loops and statements in program order, without memory accesses. bytes_written: the bytes of `bytes_moved` that it stores. arithmetic: the types of its floating-point operations: "float32", "int8 dot". title: its name from the user's Python: "x @ w", "softmax of scores". */
export interface KernelInfo {
  id: number;
  name: string;
  device: string;
  roots: number[];
  nodes: number[];
  buffers: number[];
  opts: string[];
  axes: ([string, string, number | string])[];
  flops: number;
  bytes_moved: number;
  compile_us: number;
  cached: boolean;
  same_as: number | null;
  calls: string[];
  known: string;
  code_bytes: number;
  not_run: string;
  nest: NestLine[];
  bytes_written: number;
  arithmetic: string[];
  title: string;
}

/** The samples of one launch. All runs of a trace are warm, or all are cold. id: its row. kernel: the kernel that was launched. times_us: the samples in microseconds, in the order measured. median_us: the median of the samples, in microseconds. low_us: the first quartile, in microseconds. high_us: the third quartile, in microseconds. started_us: when the launch itself began, in microseconds since the trace began. first_us: how long the launch itself took, in microseconds. warm: whether the samples are further runs with warm caches; if not, the launch itself is the only sample. single_us: the samples on one thread, for a kernel that several threads share, in microseconds. waited: seconds that threads waited for a core / seconds of the samples; None if unknown. */
export interface Run {
  id: number;
  kernel: number;
  times_us: number[];
  median_us: number;
  low_us: number;
  high_us: number;
  started_us: number;
  first_us: number;
  warm: boolean;
  single_us: number[];
  waited: number | null;
}

/** The best rate that a probe reached on this machine, see `explore.ceilings`. name: the display name: "float32 arithmetic", "read L2". kind: the kind of rate, which fixes its unit. rate: "arithmetic": 10⁹ operations a second. "memory": 10⁹ bytes a second. "clock": GHz. "launch": microseconds of an empty launch. "gather": 10⁹ loads a second from random positions. "runs": 10⁹ bytes a second for contiguous pieces of `what` bytes, each piece in another row of 16 KB. holds: the largest working set in bytes, 0 for any. what: the type of the operations ("float32", "int8 dot"), the use of each byte ("read", "copy", "write", "triad": two reads and a write), or the length of a contiguous piece in bytes ("4": a single float). threads: the number of threads that ran the probe. samples: all measured rates. */
export interface Ceiling {
  name: string;
  kind: string;
  rate: number;
  holds: number;
  what: string;
  threads: number;
  samples: number[];
}

/** The ceilings that apply to one kernel. kernel: the id of the kernel. gflops: the arithmetic ceiling for its operation types, in 10⁹ operations a second; 0 if unknown. gb_per_s: the memory ceiling for its working set and its share of writes, in 10⁹ bytes a second; 0 if unknown. arithmetic: the name of the arithmetic ceiling. memory: the name of the memory ceiling. spread: the spread of the samples of both ceilings, as a share of the rate. */
export interface Roof {
  kernel: number;
  gflops: number;
  gb_per_s: number;
  arithmetic: string;
  memory: string;
  spread: number;
}

/** A device buffer and its lifetime. id: its row. device: the device that holds it. dtype: the element type. size: the number of elements. bytes: the size in bytes. allocated_us: when it was allocated, in microseconds since the trace began; None if it is older than the trace. freed_us: when it was freed, in microseconds since the trace began; None if it outlives the trace. name: the name of its content in the user's Python, "" for none. maker: the first kernel of the trace that wrote it, None for none. */
export interface BufferInfo {
  id: number;
  device: string;
  dtype: string;
  size: number;
  bytes: number;
  allocated_us: number | null;
  freed_us: number | null;
  name: string;
  maker: number | null;
}

/** The memory of the intermediates of one schedule, or of a captured call. id: its row. total_bytes: the sum of the sizes of the intermediates. bound_bytes: the most bytes that are live at one time: the lower bound. peak_bytes: the bytes that the memory planner allocates for them. lives: (bytes, first item, last item, offset in the shared memory) of each intermediate. */
export interface MemoryUse {
  id: number;
  total_bytes: number;
  bound_bytes: number;
  peak_bytes: number;
  lives: [number, number, number, number][];
}

/** A remark on the whole trace. level: the severity. text: the remark. frame: the line of the user's code that it is about, None for none. */
export interface Message {
  level: string;
  text: string;
  frame: number | null;
}

/** The accesses of one loop iteration to one operand. buffer: its position among the kernel's arguments, None for scratch memory. name: its name in the user's Python, else "data1". bytes: the size of the accessed cache lines, in bytes. again: whether every iteration of the loop reads the same elements. stride: the number of elements by which one iteration advances the address, None if that differs. */
export interface OperandAccess {
  buffer: number | null;
  name: string;
  bytes: number;
  again: boolean;
  stride: number | null;
}

/** A line of an annotated loop nest: a loop or a statement. depth: the number of loops around it. text: the line. axis: the id of the loop's axis, None for a statement. kind: the kind of the axis; "" for a statement. size: the size of the axis, symbolic sizes as text; 0 for a statement. touches: the accesses of one iteration of the loop, by operand. bytes: the working set of one iteration, in bytes. cache: the first cache level that holds this working set: "L1", "L2", "L3" or "memory". */
export interface NestLine {
  depth: number;
  text: string;
  axis: number | null;
  kind: string;
  size: number | string;
  touches: OperandAccess[];
  bytes: number;
  cache: string;
}

/** An opt that the user may try on an axis. op: the kind of the opt. axis: the id of the axis. amounts: the usual amounts. For some kinds an amount is the id of another axis; for others it is 0 and has no meaning. legality_error: why the opt is illegal, "" if it is legal. caution: why a legal opt may be slow, "" if no reason is known. */
export interface OptOffer {
  op: string;
  axis: number;
  amounts: number[];
  legality_error: string;
  caution: string;
}

/** A listing of a kernel in a branch. language: a language of `Program.language`. lines: its lines, in order. */
export interface Listing {
  language: string;
  lines: string[];
}

/** A compiler stage that processed a kernel of a branch. name: the name of the stage. elapsed_us: its time in microseconds. steps: the number of its firings. */
export interface StageTime {
  name: string;
  elapsed_us: number;
  steps: number;
}

/** A kernel in a branch. A worker process ran it in separate memory. Times are in microseconds. The candidates of a search have no listings, nest or offers. The samples and the base samples are measured alternately. Compare only these two: different branches are timed at different moments. kernel: the captured kernel that it replaces, None for a new one. name: the name of the program. device: the device that runs it. opts: the opts that were applied, in order. steps: all opts that were proposed, with their reasons. axes: (name, kind, size) of each loop, outermost first. nest: its loops and statements, with their accesses. offers: the opts that the user may try next. listings: its program in each language. stages: the compiler stages that processed it. times_us: all samples; empty if it could not be timed. median_us: the median, None without samples. low_us: the first quartile, None without samples. high_us: the third quartile, None without samples. flops: floating-point operations of one run. bytes_moved: bytes of the elements that it reads and writes, each element once. bytes_loaded: bytes that its load instructions read. compile_us: its compile time. caches: (name, bytes) of the target's caches. base_times_us: samples of the base: the captured kernel, or for an edit the text before the edit. Empty for the base itself. base_median_us: the median of the base samples, None without samples. base_low_us: the first quartile of the base samples, None without samples. base_high_us: the third quartile of the base samples, None without samples. verdict: the comparison of samples and base samples. note: a remark on this kernel ("its results are wrong"). uops: the number of UOps that one run executes, a vector operation counted once; 0 if unknown. */
export interface KernelVariant {
  kernel: number | null;
  name: string;
  device: string;
  opts: string[];
  steps: OptStep[];
  axes: ([string, string, number | string])[];
  nest: NestLine[];
  offers: OptOffer[];
  listings: Listing[];
  stages: StageTime[];
  times_us: number[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  flops: number;
  bytes_moved: number;
  bytes_loaded: number;
  compile_us: number;
  caches: [string, number][];
  base_times_us: number[];
  base_median_us: number | null;
  base_low_us: number | null;
  base_high_us: number | null;
  verdict: string;
  note: string;
  uops: number;
}

/** A firing of the rule that a branch is about. kernel: the kernel that the pass processed. stage: the name of the pass. step: the number of the firing in the pass, from 1. rule: the name of the rule. before: the node that was replaced, as text. after: the replacement, as text. node: the digest of the replaced node. verdict: the result of the check. says: the result as text. inputs: (name, value) of a counterexample; empty if the check found none. was: the value of `before` for the counterexample. has_become: the value of `after` for the counterexample. */
export interface RuleFiring {
  kernel: number;
  stage: string;
  step: number;
  rule: string;
  before: string;
  after: string;
  node: string;
  verdict: string;
  says: string;
  inputs: [string, string][];
  was: string;
  has_become: string;
}

/** The check of a firing of this trace. stage: the id of the pass. step: the number of the firing in the pass, from 1. verdict: the result of the check. says: the result as text. inputs: (name, value) of a counterexample; empty if the check found none. was: the value before the firing, for the counterexample. has_become: the value after the firing, for the counterexample. */
export interface FiringCheck {
  stage: number;
  step: number;
  verdict: string;
  says: string;
  inputs: [string, string][];
  was: string;
  has_become: string;
}

/** A kernel or a copy of a schedule in a branch. Times are in microseconds and belong to runs of the whole schedule; None if it was not run. name: the name of the program. device: the device that runs it. kernel: the equal captured kernel, None for a new one. digest: a hash of the kernel; equal kernels have equal digests. nodes: the LazyBuffers that it computes. roots: the LazyBuffers that it stores. reads: the LazyBuffers that it reads from memory. flops: floating-point operations of one run. bytes_moved: bytes of the elements that it reads and writes, each element once. median_us: the median of its samples. low_us: the first quartile. high_us: the third quartile. */
export interface FusedKernel {
  name: string;
  device: string;
  kernel: number | null;
  digest: string;
  nodes: number[];
  roots: number[];
  reads: number[];
  flops: number;
  bytes_moved: number;
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
}

/** An output of a schedule in a branch, compared with the same output of the captured schedule. Both are computed from the same generated inputs. node: the output. difference: the largest absolute difference between two finite elements. same: whether rounding explains the difference. dtype: the element type. magnitude: the largest finite element. tolerance: the relative tolerance of `same`; 0 if the elements must be equal. */
export interface OutputCheck {
  node: number;
  difference: number;
  same: boolean;
  dtype: string;
  magnitude: number;
  tolerance: number;
}

/** A schedule in a branch. It and the captured schedule are timed alternately, in microseconds. stage: the id of the captured schedule. cut: the LazyBuffers that the user forced into memory. join: the LazyBuffers that the user forced to fuse. kernels: all kernels, in order. decisions: the last decision on each LazyBuffer. total_bytes: the sum of the sizes of the intermediates, in bytes. peak_bytes: the bytes that the memory planner allocates for them. times_us: samples of one run of all kernels. base_times_us: samples of the captured schedule. median_us: the median, None without samples. low_us: the first quartile, None without samples. high_us: the third quartile, None without samples. base_median_us: the median of the captured schedule, None without samples. base_low_us: its first quartile, None without samples. base_high_us: its third quartile, None without samples. verdict: the comparison of both schedules. outputs: the comparison of the output values. edges: the fusion edges to the LazyBuffers that its kernels compute. */
export interface ScheduleVariant {
  stage: number;
  cut: number[];
  join: number[];
  kernels: FusedKernel[];
  decisions: Decision[];
  total_bytes: number;
  peak_bytes: number;
  times_us: number[];
  base_times_us: number[];
  median_us: number | null;
  low_us: number | null;
  high_us: number | null;
  base_median_us: number | null;
  base_low_us: number | null;
  base_high_us: number | null;
  verdict: string;
  outputs: OutputCheck[];
  edges: FusionEdge[];
}

/** A command of `explore.whatif` as data. kind: the class name of the command. arguments: (name, value) of each argument. */
export interface CommandInfo {
  kind: string;
  arguments: ([string, number | string])[];
}

/** A message of a compiler about a position in a text. line: the line, from 1; 0 if the message names none. column: the column, from 1; 0 if the message names none. level: the severity. text: the message. */
export interface Diagnostic {
  line: number;
  column: number;
  level: string;
  text: string;
}

/** An element of a result that differs from the expected value. buffer: the name of the result. index: the position of the element. found: the computed value, as text. expected: the expected value, as text. */
export interface Difference {
  buffer: string;
  index: number;
  found: string;
  expected: string;
}

/** The result of editing a text of a kernel. The edited kernel's results are compared with those before the edit. stage: the edited text: "c", "llvm" or "uops". diagnostics: the messages of the compiler. ended: how the worker process failed, as text; "" if it succeeded. against: the reference of the comparison, "" without a comparison. verdict: the result of the comparison. compared: the number of elements compared. differing: the number of elements that differ by more than rounding. largest_error: the largest absolute difference, None if an element is not finite on one side. magnitude: the largest finite element of that buffer. tolerance: the relative tolerance for rounding; 0 if the elements must be equal. first: the first element that differs, None for none. before_us: samples of the text before the edit, measured alternately with those of the branch, in microseconds. unprotected: the protections that this system lacks. */
export interface EditReport {
  stage: string;
  diagnostics: Diagnostic[];
  ended: string;
  against: string;
  verdict: string;
  compared: number;
  differing: number;
  largest_error: number | null;
  magnitude: number;
  tolerance: number;
  first: Difference | null;
  before_us: number[];
  unprotected: string[];
}

/** The result of a command: how the trace would change. id: its row. parent: the branch that it continues, None for the capture. kernel: the kernel that the command is about, None for none. command: the command. status: "failed" keeps the results up to the failure. reason: why it failed; "" if it did not. kernels: the kernels that it changed. labels: its labels: "as captured", "heuristics". rule_law: the law of the rule that the command is about; "" for none. rule_text: the source code of that rule. firings: the firings of that rule, each checked. edited: the result of an edited text, None for other commands. schedule: the schedule, None for commands about other things. search: the times of a search, None without one. They cannot be compared with other times. */
export interface Branch {
  id: number;
  parent: number | null;
  kernel: number | null;
  command: CommandInfo;
  status: string;
  reason: string;
  kernels: KernelVariant[];
  labels: string[];
  rule_law: string;
  rule_text: string;
  firings: RuleFiring[];
  edited: EditReport | null;
  schedule: ScheduleVariant | null;
  search: Search | null;
}

/** A loop of a linear program. begin: the first line of the loop in the listing. end: the last line of the loop. name: the name of the loop counter. */
export interface RecordedLoop {
  begin: number;
  end: number;
  name: string;
}

/** The content of a buffer before its kernel ran. name: the name in the listing. size: the number of elements. width: the number of elements in a drawn row. cells: the first elements, as text. */
export interface RecordedBuffer {
  name: string;
  size: number;
  width: number;
  cells: string[];
}

/** A recorded step of a kernel: one executed UOp. place: the line of the executed UOp. slot: the line whose value changed; for an ASSIGN, the line of its accumulator. value: one text for each lane. buffer: the buffer that an access reads or writes; "" for other steps. stored: whether the access writes. index: for an access, the element index of each lane; None for a masked lane. */
export interface RecordedStep {
  place: number;
  slot: number;
  value: string[];
  buffer: string;
  stored: boolean;
  index: (number | null)[];
}

/** The first steps of a kernel, which a page without an engine can show. id: its row. kernel: the recorded kernel. name: the name of the program. note: a remark, for example that the inputs were generated. listing: the lines of the program. loops: the loops of the program. buffers: the buffers of the program. steps: its steps, in order. ended: whether `steps` has all steps of the kernel. */
export interface Recording {
  id: number;
  kernel: number;
  name: string;
  note: string;
  listing: string[];
  loops: RecordedLoop[];
  buffers: RecordedBuffer[];
  steps: RecordedStep[];
  ended: boolean;
}

/** One capture. `Trace` (`trace.py`) adds its queries. `module_costs` and all fields after it are derived tables. `trace_to_bytes` computes them for the front end, and `==` ignores them. version: the version of the format. title: the title of the capture. options: (name, value) of the settings that produced it. sources: the user's files. frames: the lines of the user's code. nodes: all LazyBuffers and UOps. rules: the rewrite rules that fired. stages: the stages of the compiler; parents come first. links: which node was derived from which. kernels: the kernels, in the order of their launches. programs: the listings of the kernels. runs: the samples of the kernels. buffers: the device buffers. messages: remarks on the whole trace. memory: the memory of the intermediates, by schedule. scopes: the user's modules. transforms: the passes over whole graphs. laws: the effect of each kind of opt. branches: the results of commands. ceilings: the measured ceilings of the machine; empty where they were not measured. roofs: the ceilings that apply to each kernel. recordings: recorded steps of kernels. checks: checks of firings. stage_texts: the texts after stages. regions: blocks, computations and functions of another compiler. back_edges: operands that come after their users. dialect: the dialect of another compiler; None for tinyexplore. origins: for a program of another front end, the operations of its graph that each kernel computes. outside: the operations that another library computed, in call order. module_costs: time and memory by module. figures: the figures of the whole trace, then of each kernel. roofline: the timed kernels under their ceilings; None before it is computed. kernel_time: the timeline of the runs alone; None before it is computed. elapsed_time: the timeline with the stages of the compiler; None before it is computed. fusion_edges: the scheduler's decision on each edge. scripts: the scripts of the kernels. */
export interface Trace {
  version: number;
  title: string;
  options: [string, string][];
  sources: Source[];
  frames: Frame[];
  nodes: Node[];
  rules: RuleInfo[];
  stages: Stage[];
  links: Link[];
  kernels: KernelInfo[];
  programs: Program[];
  runs: Run[];
  buffers: BufferInfo[];
  messages: Message[];
  memory: MemoryUse[];
  scopes: Scope[];
  transforms: Transform[];
  laws: OptEffect[];
  branches: Branch[];
  ceilings: Ceiling[];
  roofs: Roof[];
  recordings: Recording[];
  checks: FiringCheck[];
  stage_texts: StageText[];
  regions: Region[];
  back_edges: BackEdge[];
  dialect: Dialect | null;
  origins: Program[];
  outside: OutsideOperation[];
  module_costs: ModuleCost[];
  figures: Figures[];
  roofline: Roofline | null;
  kernel_time: Timeline | null;
  elapsed_time: Timeline | null;
  fusion_edges: FusionEdge[];
  scripts: KernelScript[];
}

/** The constraint of each field, for trace_validation.ts: [shape], or [shape, value of a missing field]. */
export const SHAPES: Readonly<Record<string, Readonly<Record<string, readonly unknown[]>>>> = {
  Frame: {
    id: [{"id": true}],
    source: [{"index": "sources", "before": false}],
    line: [{"least": 1, "of": "int"}],
    function: ["str"],
    span: [{"either": [{"each": [{"least": 1, "of": "int"}, {"least": 0, "of": "int"}, {"least": 1, "of": "int"}, {"least": 0, "of": "int"}]}, "null"]}, null],
  },
  Source: {
    id: [{"id": true}],
    name: ["str"],
    text: ["str"],
  },
  Node: {
    id: [{"id": true}],
    kind: ["str"],
    op: ["str"],
    src: [{"many": {"index": "nodes", "before": true}}],
    dtype: ["str"],
    shape: [{"either": [{"many": {"either": ["int", "str"]}}, "null"]}],
    arg: ["str"],
    digest: ["str"],
    user: [{"either": [{"index": "frames", "before": false}, "null"]}],
    label: ["str"],
    detail: ["str"],
    group: ["str"],
    calls: [{"many": "str"}, []],
    name: ["str", ""],
    scope: [{"either": [{"index": "scopes", "before": false}, "null"]}, null],
    backward: ["bool", false],
  },
  Scope: {
    id: [{"id": true}],
    name: ["str"],
    kind: ["str"],
    parent: [{"either": [{"index": "scopes", "before": true}, "null"]}],
    parameter_bytes: [{"least": 0, "of": "int"}],
  },
  ModuleCost: {
    id: [{"id": true}],
    parent: [{"either": [{"index": "module_costs", "before": true}, "null"]}],
    scope: [{"either": [{"index": "scopes", "before": false}, "null"]}],
    time_us: [{"least": 0, "of": "float"}],
    backward_us: [{"least": 0, "of": "float"}],
    parameter_bytes: [{"least": 0, "of": "int"}],
    result_bytes: [{"least": 0, "of": "int"}],
    kernels: [{"many": {"index": "kernels", "before": false}}],
  },
  Figure: {
    place: [{"words": ["python", "lazy", "kernels", "passes", "uops", "code", "run"]}],
    title: ["str"],
    words: ["str"],
    time_us: [{"least": 0, "of": "float"}],
  },
  Figures: {
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    parts: [{"many": {"row": "Figure"}}],
    compile_us: [{"least": 0, "of": "float"}],
    search_us: [{"least": 0, "of": "float"}],
    run_us: [{"least": 0, "of": "float"}],
    firings: [{"least": 0, "of": "int"}],
    passes: [{"many": {"index": "stages", "before": false}}],
    code: [{"either": [{"index": "stages", "before": false}, "null"]}],
    summary: [{"many": "str"}, []],
  },
  RooflinePoint: {
    kernel: [{"index": "kernels", "before": false}],
    flops_per_byte: [{"least": 0, "of": "float"}],
    gflops: [{"least": 0, "of": "float"}],
    attainable: [{"either": [{"least": 0, "of": "float"}, "null"]}],
    limit: [{"words": ["memory", "arithmetic", ""]}],
    ceiling: ["str"],
    time_us: [{"least": 0, "of": "float"}],
    text: ["str"],
  },
  RooflineCeiling: {
    name: ["str"],
    kind: [{"words": ["memory", "arithmetic"]}],
    rate: [{"least": 0, "of": "float"}],
  },
  Roofline: {
    points: [{"many": {"row": "RooflinePoint"}}],
    ceilings: [{"many": {"row": "RooflineCeiling"}}],
    note: ["str"],
  },
  TimelineSpan: {
    row: [{"least": 0, "of": "int"}],
    name: ["str"],
    started_us: ["float"],
    elapsed_us: [{"least": 0, "of": "float"}],
    depth: [{"least": 0, "of": "int"}, 0],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}, null],
    stage: [{"either": [{"index": "stages", "before": false}, "null"]}, null],
  },
  BufferLifetime: {
    buffer: [{"index": "buffers", "before": false}],
    name: ["str"],
    bytes: [{"least": 0, "of": "int"}],
    started_us: ["float"],
    ended_us: ["float"],
    lane: [{"either": [{"least": 0, "of": "int"}, "null"]}],
  },
  Timeline: {
    rows: [{"many": {"each": [{"least": 0, "of": "int"}, "str"]}}],
    spans: [{"many": {"row": "TimelineSpan"}}],
    memory: [{"many": {"each": ["float", "int"]}}],
    lives: [{"many": {"row": "BufferLifetime"}}],
    end_us: ["float", 0.0],
  },
  FusionEdge: {
    src: [{"index": "nodes", "before": false}],
    dst: [{"index": "nodes", "before": false}],
    mark: [{"words": ["fused", "cut", "again", "read"]}],
    illegal: ["str"],
  },
  KernelScript: {
    kernel: [{"index": "kernels", "before": false}],
    texts: [{"many": "str"}],
    inserts: [{"many": {"words": ["shared", "llvm", "c"]}}],
  },
  RuleInfo: {
    id: [{"id": true}],
    name: ["str"],
    law: ["str"],
    doc: ["str"],
    file: ["str"],
    line: [{"least": 0, "of": "int"}],
    text: ["str"],
  },
  Transform: {
    id: [{"id": true}],
    name: ["str"],
    law: ["str"],
    file: ["str"],
    line: [{"least": 0, "of": "int"}],
    text: ["str"],
  },
  Step: {
    rule: [{"either": [{"index": "rules", "before": false}, "null"]}],
    before: [{"index": "nodes", "before": false}],
    after: [{"index": "nodes", "before": false}],
    at_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}],
  },
  NumberComparison: {
    what: ["str"],
    value: ["float"],
    bound: ["float"],
    over: ["bool"],
  },
  Decision: {
    node: [{"index": "nodes", "before": false}],
    decision: ["str"],
    reason: ["str"],
    compared: [{"many": {"row": "NumberComparison"}}, []],
    legality_error: ["str", ""],
  },
  OptEffect: {
    id: [{"id": true}],
    name: ["str"],
    words: ["str"],
    before: ["str"],
    after: ["str"],
  },
  OptStep: {
    opt: ["str"],
    applied: ["bool"],
    reason: ["str"],
    laws: [{"many": {"index": "laws", "before": false}}, []],
    axis: ["str", ""],
    made: [{"many": "str"}, []],
  },
  OptionScores: {
    what: ["str"],
    options: [{"many": {"each": ["str", "float"]}}],
    chosen: ["str"],
    least: ["bool"],
  },
  Choice: {
    name: ["str"],
    law: ["str"],
    settled_by: ["str"],
    compared: [{"many": {"row": "NumberComparison"}}],
    weighed: [{"many": {"row": "OptionScores"}}],
    opts: [{"many": {"least": 0, "of": "int"}}],
  },
  Candidate: {
    opts: [{"many": "str"}],
    best_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}],
    note: ["str", ""],
  },
  Search: {
    before_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}],
    after_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}],
    tried: [{"least": 0, "of": "int"}],
    reason: ["str"],
  },
  Stage: {
    id: [{"id": true}],
    name: ["str"],
    parent: [{"either": [{"index": "stages", "before": true}, "null"]}],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    before: [{"many": {"index": "nodes", "before": false}}],
    after: [{"many": {"index": "nodes", "before": false}}],
    started_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}],
    elapsed_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}],
    steps: [{"many": {"row": "Step"}}],
    decisions: [{"many": {"row": "Decision"}}],
    opts: [{"many": {"row": "OptStep"}}],
    candidates: [{"many": {"row": "Candidate"}}, []],
    search: [{"either": [{"row": "Search"}, "null"]}, null],
    thread: [{"least": 0, "of": "int"}, 0],
    transform: [{"either": [{"index": "transforms", "before": false}, "null"]}, null],
    choices: [{"many": {"row": "Choice"}}, []],
  },
  Link: {
    src: [{"index": "nodes", "before": false}],
    dst: [{"index": "nodes", "before": false}],
    how: ["str"],
    stage: [{"either": [{"index": "stages", "before": false}, "null"]}],
  },
  Line: {
    text: ["str"],
    nodes: [{"many": {"index": "nodes", "before": false}}],
  },
  TextLine: {
    text: ["str"],
    nodes: [{"many": {"index": "nodes", "before": false}}, []],
    origin: [{"either": [{"least": 0, "of": "int"}, "null"]}, null],
  },
  StageText: {
    id: [{"id": true}],
    stage: [{"index": "stages", "before": false}],
    language: ["str"],
    lines: [{"many": {"row": "TextLine"}}],
    title: ["str", ""],
    before: [{"either": [{"index": "stage_texts", "before": true}, "null"]}, null],
  },
  Region: {
    id: [{"id": true}],
    name: ["str"],
    kind: ["str"],
    nodes: [{"many": {"index": "nodes", "before": false}}, []],
    parent: [{"either": [{"index": "regions", "before": true}, "null"]}, null],
  },
  BackEdge: {
    src: [{"index": "nodes", "before": false}],
    dst: [{"index": "nodes", "before": false}],
  },
  OutsideOperation: {
    node: [{"index": "nodes", "before": false}],
    name: ["str"],
    time_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
  },
  Level: {
    kind: ["str"],
    name: ["str"],
    plural: ["str"],
    role: [{"words": ["tensors", "program", "lines"]}],
  },
  Language: {
    key: ["str"],
    name: ["str"],
  },
  Dialect: {
    compiler: ["str"],
    version: ["str"],
    levels: [{"many": {"row": "Level"}}],
    languages: [{"many": {"row": "Language"}}],
    panels: [{"many": "str"}],
    notes: [{"many": "str"}, []],
  },
  Program: {
    id: [{"id": true}],
    kernel: [{"index": "kernels", "before": false}],
    language: ["str"],
    lines: [{"many": {"row": "Line"}}],
    effort: ["str", ""],
    branches: ["bool", false],
  },
  KernelInfo: {
    id: [{"id": true}],
    name: ["str"],
    device: ["str"],
    roots: [{"many": {"index": "nodes", "before": false}}],
    nodes: [{"many": {"index": "nodes", "before": false}}],
    buffers: [{"many": {"index": "buffers", "before": false}}],
    opts: [{"many": "str"}],
    axes: [{"many": {"each": ["str", "str", {"either": ["int", "str"]}]}}],
    flops: [{"least": 0, "of": "int"}],
    bytes_moved: [{"least": 0, "of": "int"}],
    compile_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    cached: ["bool"],
    same_as: [{"either": [{"index": "kernels", "before": true}, "null"]}],
    calls: [{"many": "str"}, []],
    known: ["str", ""],
    code_bytes: [{"least": 0, "of": "int"}, 0],
    not_run: ["str", ""],
    nest: [{"many": {"row": "NestLine"}}, []],
    bytes_written: [{"least": 0, "of": "int"}, 0],
    arithmetic: [{"many": "str"}, []],
    title: ["str", ""],
  },
  Run: {
    id: [{"id": true}],
    kernel: [{"index": "kernels", "before": false}],
    times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}],
    median_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    low_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    high_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    started_us: [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}, 0.0],
    first_us: [{"least": 0, "most": 1000000000000000, "of": "float"}, 0.0],
    warm: ["bool", false],
    single_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    waited: [{"either": [{"least": 0, "of": "float"}, "null"]}, null],
  },
  Ceiling: {
    name: ["str"],
    kind: [{"words": ["arithmetic", "memory", "clock", "launch", "gather", "runs"]}],
    rate: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    holds: [{"least": 0, "of": "int"}, 0],
    what: ["str", ""],
    threads: [{"least": 0, "of": "int"}, 0],
    samples: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
  },
  Roof: {
    kernel: [{"index": "kernels", "before": false}],
    gflops: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    gb_per_s: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    arithmetic: ["str"],
    memory: ["str"],
    spread: ["float", 0.0],
  },
  BufferInfo: {
    id: [{"id": true}],
    device: ["str"],
    dtype: ["str"],
    size: [{"least": 0, "of": "int"}],
    bytes: [{"least": 0, "of": "int"}],
    allocated_us: [{"either": [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}, "null"]}],
    freed_us: [{"either": [{"least": -1000000000000000, "most": 1000000000000000, "of": "float"}, "null"]}],
    name: ["str", ""],
    maker: [{"either": [{"index": "kernels", "before": false}, "null"]}, null],
  },
  MemoryUse: {
    id: [{"id": true}],
    total_bytes: [{"least": 0, "of": "int"}],
    bound_bytes: [{"least": 0, "of": "int"}],
    peak_bytes: [{"least": 0, "of": "int"}],
    lives: [{"many": {"each": [{"least": 0, "of": "int"}, {"least": 0, "of": "int"}, {"least": 0, "of": "int"}, {"least": 0, "of": "int"}]}}],
  },
  Message: {
    level: [{"words": ["error", "warning", "note"]}],
    text: ["str"],
    frame: [{"either": [{"index": "frames", "before": false}, "null"]}],
  },
  OperandAccess: {
    buffer: [{"either": [{"least": 0, "of": "int"}, "null"]}],
    name: ["str"],
    bytes: [{"least": 0, "of": "int"}],
    again: ["bool"],
    stride: [{"either": ["int", "null"]}],
  },
  NestLine: {
    depth: [{"least": 0, "most": 1000, "of": "int"}],
    text: ["str"],
    axis: [{"either": [{"least": 0, "of": "int"}, "null"]}, null],
    kind: ["str", ""],
    size: [{"either": ["int", "str"]}, 0],
    touches: [{"many": {"row": "OperandAccess"}}, []],
    bytes: [{"least": 0, "of": "int"}, 0],
    cache: ["str", ""],
  },
  OptOffer: {
    op: ["str"],
    axis: [{"least": 0, "of": "int"}],
    amounts: [{"many": {"least": 0, "of": "int"}}],
    legality_error: ["str", ""],
    caution: ["str", ""],
  },
  Listing: {
    language: ["str"],
    lines: [{"many": "str"}],
  },
  StageTime: {
    name: ["str"],
    elapsed_us: [{"least": 0, "most": 1000000000000000, "of": "float"}],
    steps: [{"least": 0, "of": "int"}],
  },
  KernelVariant: {
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    name: ["str"],
    device: ["str"],
    opts: [{"many": "str"}],
    steps: [{"many": {"row": "OptStep"}}, []],
    axes: [{"many": {"each": ["str", "str", {"either": ["int", "str"]}]}}, []],
    nest: [{"many": {"row": "NestLine"}}, []],
    offers: [{"many": {"row": "OptOffer"}}, []],
    listings: [{"many": {"row": "Listing"}}, []],
    stages: [{"many": {"row": "StageTime"}}, []],
    times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    flops: [{"least": 0, "of": "int"}, 0],
    bytes_moved: [{"least": 0, "of": "int"}, 0],
    bytes_loaded: [{"least": 0, "of": "int"}, 0],
    compile_us: [{"least": 0, "most": 1000000000000000, "of": "float"}, 0.0],
    caches: [{"many": {"each": ["str", {"least": 0, "of": "int"}]}}, []],
    base_times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    base_median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    verdict: [{"words": ["faster", "slower", "noise", "unknown"]}, "unknown"],
    note: ["str", ""],
    uops: [{"least": 0, "of": "int"}, 0],
  },
  RuleFiring: {
    kernel: [{"index": "kernels", "before": false}],
    stage: ["str"],
    step: [{"least": 0, "of": "int"}],
    rule: ["str"],
    before: ["str"],
    after: ["str"],
    node: ["str"],
    verdict: [{"words": ["proved", "agrees", "differs", "not checked"]}],
    says: ["str"],
    inputs: [{"many": {"each": ["str", "str"]}}, []],
    was: ["str", ""],
    has_become: ["str", ""],
  },
  FiringCheck: {
    stage: [{"index": "stages", "before": false}],
    step: [{"least": 1, "of": "int"}],
    verdict: [{"words": ["proved", "agrees", "differs", "not checked"]}],
    says: ["str"],
    inputs: [{"many": {"each": ["str", "str"]}}, []],
    was: ["str", ""],
    has_become: ["str", ""],
  },
  FusedKernel: {
    name: ["str"],
    device: ["str"],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    digest: ["str"],
    nodes: [{"many": {"index": "nodes", "before": false}}],
    roots: [{"many": {"index": "nodes", "before": false}}],
    reads: [{"many": {"index": "nodes", "before": false}}],
    flops: [{"least": 0, "of": "int"}],
    bytes_moved: [{"least": 0, "of": "int"}],
    median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
  },
  OutputCheck: {
    node: [{"index": "nodes", "before": false}],
    difference: [{"least": 0, "of": "float"}],
    same: ["bool"],
    dtype: ["str", ""],
    magnitude: [{"least": 0, "of": "float"}, 0.0],
    tolerance: [{"least": 0, "of": "float"}, 0.0],
  },
  ScheduleVariant: {
    stage: [{"index": "stages", "before": false}],
    cut: [{"many": {"index": "nodes", "before": false}}],
    join: [{"many": {"index": "nodes", "before": false}}],
    kernels: [{"many": {"row": "FusedKernel"}}],
    decisions: [{"many": {"row": "Decision"}}],
    total_bytes: [{"least": 0, "of": "int"}],
    peak_bytes: [{"least": 0, "of": "int"}],
    times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    base_times_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_median_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_low_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    base_high_us: [{"either": [{"least": 0, "most": 1000000000000000, "of": "float"}, "null"]}, null],
    verdict: [{"words": ["faster", "slower", "noise", "unknown"]}, "unknown"],
    outputs: [{"many": {"row": "OutputCheck"}}, []],
    edges: [{"many": {"row": "FusionEdge"}}, []],
  },
  CommandInfo: {
    kind: ["str"],
    arguments: [{"many": {"each": ["str", {"either": ["int", "str"]}]}}],
  },
  Diagnostic: {
    line: [{"least": 0, "of": "int"}],
    column: [{"least": 0, "of": "int"}],
    level: [{"words": ["error", "warning", "note"]}],
    text: ["str"],
  },
  Difference: {
    buffer: ["str"],
    index: [{"least": 0, "of": "int"}],
    found: ["str"],
    expected: ["str"],
  },
  EditReport: {
    stage: ["str"],
    diagnostics: [{"many": {"row": "Diagnostic"}}, []],
    ended: ["str", ""],
    against: ["str", ""],
    verdict: [{"words": ["", "same bits", "within rounding", "differs"]}, ""],
    compared: [{"least": 0, "of": "int"}, 0],
    differing: [{"least": 0, "of": "int"}, 0],
    largest_error: [{"either": ["float", "null"]}, null],
    magnitude: [{"least": 0, "of": "float"}, 0.0],
    tolerance: [{"least": 0, "of": "float"}, 0.0],
    first: [{"either": [{"row": "Difference"}, "null"]}, null],
    before_us: [{"many": {"least": 0, "most": 1000000000000000, "of": "float"}}, []],
    unprotected: [{"many": "str"}, []],
  },
  Branch: {
    id: [{"id": true}],
    parent: [{"either": [{"index": "branches", "before": true}, "null"]}],
    kernel: [{"either": [{"index": "kernels", "before": false}, "null"]}],
    command: [{"row": "CommandInfo"}],
    status: [{"words": ["done", "failed"]}],
    reason: ["str"],
    kernels: [{"many": {"row": "KernelVariant"}}],
    labels: [{"many": "str"}, []],
    rule_law: ["str", ""],
    rule_text: ["str", ""],
    firings: [{"many": {"row": "RuleFiring"}}, []],
    edited: [{"either": [{"row": "EditReport"}, "null"]}, null],
    schedule: [{"either": [{"row": "ScheduleVariant"}, "null"]}, null],
    search: [{"either": [{"row": "Search"}, "null"]}, null],
  },
  RecordedLoop: {
    begin: [{"least": 0, "of": "int"}],
    end: [{"least": 0, "of": "int"}],
    name: ["str"],
  },
  RecordedBuffer: {
    name: ["str"],
    size: [{"least": 0, "of": "int"}],
    width: [{"least": 1, "of": "int"}],
    cells: [{"many": "str"}],
  },
  RecordedStep: {
    place: [{"least": 0, "of": "int"}],
    slot: [{"least": 0, "of": "int"}],
    value: [{"many": "str"}],
    buffer: ["str", ""],
    stored: ["bool", false],
    index: [{"many": {"either": ["int", "null"]}}, []],
  },
  Recording: {
    id: [{"id": true}],
    kernel: [{"index": "kernels", "before": false}],
    name: ["str"],
    note: ["str"],
    listing: [{"many": "str"}],
    loops: [{"many": {"row": "RecordedLoop"}}],
    buffers: [{"many": {"row": "RecordedBuffer"}}],
    steps: [{"many": {"row": "RecordedStep"}}],
    ended: ["bool"],
  },
  Trace: {
    version: ["int"],
    title: ["str"],
    options: [{"many": {"each": ["str", "str"]}}],
    sources: [{"many": {"row": "Source"}}],
    frames: [{"many": {"row": "Frame"}}],
    nodes: [{"many": {"row": "Node"}}],
    rules: [{"many": {"row": "RuleInfo"}}],
    stages: [{"many": {"row": "Stage"}}],
    links: [{"many": {"row": "Link"}}],
    kernels: [{"many": {"row": "KernelInfo"}}],
    programs: [{"many": {"row": "Program"}}],
    runs: [{"many": {"row": "Run"}}],
    buffers: [{"many": {"row": "BufferInfo"}}],
    messages: [{"many": {"row": "Message"}}],
    memory: [{"many": {"row": "MemoryUse"}}, []],
    scopes: [{"many": {"row": "Scope"}}, []],
    transforms: [{"many": {"row": "Transform"}}, []],
    laws: [{"many": {"row": "OptEffect"}}, []],
    branches: [{"many": {"row": "Branch"}}, []],
    ceilings: [{"many": {"row": "Ceiling"}}, []],
    roofs: [{"many": {"row": "Roof"}}, []],
    recordings: [{"many": {"row": "Recording"}}, []],
    checks: [{"many": {"row": "FiringCheck"}}, []],
    stage_texts: [{"many": {"row": "StageText"}}, []],
    regions: [{"many": {"row": "Region"}}, []],
    back_edges: [{"many": {"row": "BackEdge"}}, []],
    dialect: [{"either": [{"row": "Dialect"}, "null"]}, null],
    origins: [{"many": {"row": "Program"}}, []],
    outside: [{"many": {"row": "OutsideOperation"}}, []],
    module_costs: [{"many": {"row": "ModuleCost"}}, []],
    figures: [{"many": {"row": "Figures"}}, []],
    roofline: [{"either": [{"row": "Roofline"}, "null"]}, null],
    kernel_time: [{"either": [{"row": "Timeline"}, "null"]}, null],
    elapsed_time: [{"either": [{"row": "Timeline"}, "null"]}, null],
    fusion_edges: [{"many": {"row": "FusionEdge"}}, []],
    scripts: [{"many": {"row": "KernelScript"}}, []],
  },
};
