// A small tokenizer for every language of the explorer: a list of (class, pattern) for each, tried in order.

export type Token = [kind: string, text: string];
type Grammar = { kinds: string[]; pattern: RegExp };

function joinWords(text: string): string {
  return `\\b(?:${text.trim().split(/\s+/).join("|")})\\b`;
}

function makeGrammar(...parts: [kind: string, pattern: string][]): Grammar {
  const pattern = new RegExp(parts.map(([, source]) => `(${source})`).join("|"), "g");
  return { kinds: parts.map(([kind]) => kind), pattern };
}

const STRING = `"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?`;
const NUMBER = "\\b(?:0[xX][\\da-fA-F.]+(?:p[+-]?\\d+)?|\\d[\\d_]*\\.?\\d*(?:[eE][+-]?\\d+)?)[uUlLfFhHjn]*\\b";

const PYTHON = makeGrammar(
  ["comment", "#.*"],
  ["string", `\\b[rRbBfFuU]{0,2}(?:${STRING})|(?:${STRING})`],
  [
    "keyword",
    joinWords(`def class return for while if elif else in is not and or import from as with lambda None True
    False yield try except finally raise pass break continue global nonlocal assert del async await match case`),
  ],
  ["decorator", "^\\s*@[\\w.]+"],
  ["number", NUMBER],
  ["call", "\\b[A-Za-z_]\\w*(?=\\()"],
);
const C_FAMILY = makeGrammar(
  ["comment", "//.*|/\\*.*?(?:\\*/|$)"],
  ["macro", "^\\s*#.*"],
  ["string", STRING],
  [
    "type",
    joinWords(`void char short int long unsigned signed float double _Bool bool half bfloat16 size_t
    u?int(?:8|16|32|64)_t [fiu](?:8|16|32|64) (?:float|double|u?int|half|u?char|u?short|u?long)\\d+(?:x\\d+)? vec[234] mat\\d`),
  ],
  [
    "keyword",
    joinWords(`for while do if else return break continue switch case default struct union typedef static const
    restrict __restrict__ __restrict inline extern register volatile sizeof __attribute__ kernel __kernel __global
    __local __global__ __device__ device threadgroup constant using namespace fn var let`),
  ],
  ["number", NUMBER],
  ["call", "\\b[A-Za-z_]\\w*(?=\\()"],
);
const LLVM = makeGrammar(
  ["comment", ";.*"],
  ["string", STRING],
  ["label", "^[\\w.$-]+:"],
  ["meta", "![\\w.]*|#\\d+"],
  ["register", "%[\\w.$-]+"],
  ["global", "@[\\w.$-]+"],
  ["type", `\\b(?:void|half|bfloat|float|double|label|ptr|opaque|metadata|i\\d+)\\b|<\\d+ x [\\w]+>`],
  [
    "call",
    joinWords(`load store getelementptr phi br ret call icmp fcmp select add sub mul sdiv udiv srem urem fadd fsub
    fmul fdiv frem fneg and or xor shl lshr ashr trunc zext sext fptosi fptoui sitofp uitofp fptrunc fpext bitcast
    insertelement extractelement shufflevector alloca switch unreachable freeze`),
  ],
  [
    "keyword",
    joinWords(`define declare target datalayout triple source_filename attributes private unnamed_addr constant
    global internal tail fast nnan ninf nsz arcp contract afn reassoc nuw nsw exact inbounds align to eq ne slt sle sgt
    sge ult ule ugt uge oeq one olt ole ogt oge uno ord une true false undef poison zeroinitializer noalias nocapture
    readonly writeonly nonnull noundef nounwind captures disjoint samesign nneg`),
  ],
  ["number", "-?\\b(?:0x[\\da-fA-F]+|\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?)\\b"],
);
const ASM = makeGrammar(
  ["comment", "(?:#|//|;).*|/\\*.*?\\*/"],
  ["string", STRING],
  ["label", "^\\s*[.\\w$@]+:"],
  ["macro", "^\\s*\\.[\\w.]+|\\.L[\\w$]+"],
  ["call", "^\\s*(?:lock |rep )?[a-z][\\w.]*(?=\\s|$)"],
  [
    "register",
    `%[a-z]\\w*|\\b(?:[re]?(?:ax|bx|cx|dx|si|di|sp|bp|ip)|r\\d+[dwb]?|[abcd][lh]|[sd]il|[xyz]mm\\d+|k[0-7]|
    [xwvqds]\\d+|sp|lr|zero|ra|[ast]\\d+|f[ast]\\d+)\\b`.replace(/\s+/g, ""),
  ],
  ["type", "\\b(?:[xyz]mmword|[dqt]?word|byte|ptr)\\b"],
  ["number", "[$#]?-?\\b(?:0x[\\da-fA-F]+|\\d+(?:\\.\\d+)?)\\b"],
);
const UOPS = makeGrammar(
  ["comment", "#.*|//.*"],
  ["string", STRING],
  ["call", "\\b[A-Z][A-Z_\\d]{2,}\\b"],
  [
    "type",
    `\\b(?:void|bool|bfloat16|u?int(?:8|16|32|64)|float(?:8\\w*|16|32|64)|(?:char|uchar|short|ushort|int|uint|long|
    ulong|half|float|double))\\b(?:\\.\\w+)*(?:\\(\\d+\\)|×\\d+|x\\d+)?`.replace(/\s+/g, ""),
  ],
  ["register", "%\\w+"],
  ["number", "-?\\b\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?\\b"],
);

const WAT = makeGrammar(
  ["comment", ";;.*"],
  ["string", STRING],
  ["register", "\\$[\\w.]+"],
  [
    "keyword",
    joinWords(`module memory import export func param result local global loop block if then else br br_if call
    return select drop`),
  ],
  ["call", "\\b(?:[if](?:32|64|8x16|16x8|32x4|64x2)|v128|local)\\.\\w+"],
  ["type", "\\b(?:[if](?:32|64|8x16|16x8|32x4|64x2)|v128)\\b"],
  ["number", "-?\\b(?:0x[\\da-fA-F]+|\\d+(?:\\.\\d+)?(?:e[+-]?\\d+)?|inf|nan)\\b"],
);

const GRAMMARS: Record<string, Grammar> = {
  aten: PYTHON,
  python: PYTHON,
  llvm: LLVM,
  "llvm-opt": LLVM,
  mir: LLVM,
  asm: ASM,
  ptx: ASM,
  amdgcn: ASM,
  uops: UOPS,
  wat: WAT,
};

/** Returns the tokens of one line; joined, their texts are the line. The kind "" is plain text. */
export function tokenize(language: string, line: string): Token[] {
  const { kinds, pattern } = GRAMMARS[language] ?? C_FAMILY;
  const tokens: Token[] = [];
  let end = 0;
  pattern.lastIndex = 0;
  for (let match = pattern.exec(line); match !== null; match = pattern.exec(line)) {
    if (match[0] === "") {
      pattern.lastIndex += 1;
      continue;
    }
    if (match.index > end) tokens.push(["", line.slice(end, match.index)]);
    tokens.push([kinds[match.slice(1).findIndex((group) => group !== undefined)] ?? "", match[0]]);
    end = match.index + match[0].length;
  }
  if (end < line.length) tokens.push(["", line.slice(end)]);
  return tokens;
}

const DOCSTRING = /"""|'''/g;

/** Tokenizes Python line by line; strings in triple quotes may span several lines. */
export function tokenizePython(text: string): Token[][] {
  let open: string | null = null;
  return text.split("\n").map((line) => {
    const tokens: Token[] = [];
    let start = 0;
    DOCSTRING.lastIndex = 0;
    for (let match = DOCSTRING.exec(line); match !== null; match = DOCSTRING.exec(line)) {
      if (open === null) {
        tokens.push(...tokenize("python", line.slice(start, match.index)));
        open = match[0];
        start = match.index;
      } else if (open === match[0]) {
        tokens.push(["string", line.slice(start, match.index + 3)]);
        open = null;
        start = match.index + 3;
      }
    }
    const remaining = line.slice(start);
    if (remaining !== "")
      tokens.push(...(open === null ? tokenize("python", remaining) : [["string", remaining] as Token]));
    return tokens;
  });
}
