// Short descriptions of operations: tooltips for the opcodes of a listing.

const UOPS: Record<string, string> = {
  DEFINE_GLOBAL: "a buffer argument of the kernel",
  DEFINE_LOCAL: "scratch memory of one call",
  DEFINE_ACC: "a register, set to its start value here",
  DEFINE_VAR: "an integer argument",
  CONST: "a constant, the same in every lane",
  ENDRANGE: "closes a loop",
  INDEX: "the address of an element; with a condition, lanes that fail it access no memory",
  LOAD: "reads as many neighboring elements as the type has lanes",
  PREFETCH: "requests a cache line before its use, possibly outside of the buffer",
  STORE: "writes as many neighboring elements as the value has lanes",
  ASSIGN: "the register becomes the value",
  RESULT: "the register's value after its loops",
  REDUCE: "combines a value over loops",
  HREDUCE: "combines all lanes of a vector, halving it repeatedly; several vectors give one lane each",
  VECTORIZE: "a vector from one scalar per lane; of equal scalars, a broadcast",
  GEP: "one lane of a vector",
  TABLE: "one of a few constants, chosen by the low bits of an index",
  WMMA: "a tensor core: C + A · B on matrices that the lanes of a warp hold, or tile registers of a CPU",
  CAST: "the same value in another type",
  BITCAST: "the same bits in another type",
  WHERE: "selects operand 2 if the condition holds, otherwise operand 3",
  MULACC: "x * y + z, rounded once or twice",
  FDIV: "division of floats, correctly rounded",
  IDIV: "division of integers, towards zero",
  MOD: "the remainder, with the sign of the dividend",
  SCALE: "the first times 2 to the power of the second, rounded down to a whole number",
  DOT_BF16: "adds to each lane the products of two pairs of bfloat16 numbers, summed in float32",
  DOT_I8: "adds to each lane the products of four pairs of bytes, summed in int32",
  DOT_U8: "adds to each lane the products of four pairs of bytes, the first unsigned, summed in int32",
  BARRIER: "later loads see all earlier stores",
};

/** x86-64 and AArch64, most specific first. */
const ASM: [RegExp, string][] = [
  [/^v?fn?m(add|sub)(132|213|231)/, "fused multiply-add (or subtract): one rounding"],
  [/^fml[as]$|^fn?m(add|sub)$/, "fused multiply-add (or subtract): one rounding"],
  [/^vbroadcast|^vpbroadcast|^ld1r$/, "one element into every lane"],
  [/^v?mov(ups|upd|dqu|aps|apd|dqa|ss|sd|d|q)/, "moves between memory and a vector register"],
  [/^v?p?(gather)/, "reads lanes from many addresses"],
  [/^vdpbf16ps|^vpdp(bu|w)s|^v?bfdot$|^[su]dot$/, "sums of products of narrow numbers, added to wider lanes"],
  [/^v?p?(insert|extract)|^v?p?(perm|shuf|unpck|blend|align)/, "rearranges lanes"],
  [/^v?(cvt)|^[su]cvtf|^fcvt/, "converts between types"],
  [/^v?xor(ps|pd)$|^vpxor/, "exclusive or; of a register with itself: zero"],
  [/^v?p?add|^fadd|^inc/, "adds"],
  [/^v?p?sub|^fsub|^dec/, "subtracts"],
  [/^v?p?mul|^imul|^fmul|^madd/, "multiplies"],
  [/^v?p?div|^idiv|^fdiv|^[su]div/, "divides"],
  [/^v?p?(max|min)|^f(max|min)/, "the larger (or smaller) of each pair"],
  [/^vscalef/, "multiplies by a power of two"],
  [/^v?(sqrt|rsqrt|rcp)|^fsqrt/, "square root, or an estimate of a reciprocal"],
  [/^v?p?cmp|^v?u?comis|^test$|^fcmp/, "compares"],
  [/^lea$|^adr/, "computes an address (or a sum) without accessing memory"],
  [/^(sh[lr]|sa[lr]|ro[lr]|rorx|v?ps[lr][la])|^lsl|^lsr|^asr/, "shifts or rotates bits"],
  [/^(jmp|b)$/, "jumps"],
  [/^j\w+$|^b\.|^cbn?z|^tbn?z/, "jumps if a condition holds"],
  [/^cmov|^csel/, "moves if a condition holds"],
  [/^call|^bl$/, "calls a function"],
  [/^ret/, "returns"],
  [/^push|^pop|^stp|^ldp/, "saves or restores registers on the stack"],
  [/^vzeroupper/, "clears the upper halves of the vector registers, which avoids a penalty for later SSE instructions"],
  [/^prefetch|^prfm/, "requests a cache line before its use"],
  [/^mov|^ldr|^str|^ld1|^st1/, "moves between registers and memory"],
];

const PTX: [RegExp, string][] = [
  [/^mov/, "copies a register, or reads the index of the thread (%tid, %ctaid)"],
  [/^ld\.param/, "reads an argument of the kernel"],
  [/^ld\.shared/, "reads memory that the threads of a block share"],
  [/^st\.shared/, "writes memory that the threads of a block share"],
  [/^ld\.global/, "reads the GPU's memory (.nc: through the cache for memory that is not written)"],
  [/^st\.global/, "writes the GPU's memory"],
  [/^(ld|st)\.local/, "local memory of a thread: an array, or spilled registers"],
  [/^bar/, "waits until every thread of the block arrives"],
  [/^fma/, "fused multiply-add: x * y + z rounded once"],
  [/^mad|^mul\.wide/, "multiplies integers (.wide: into twice the bits)"],
  [/^setp/, "compares into a predicate"],
  [/^selp/, "one of two values, by a predicate"],
  [/^bra/, "jumps"],
  [/^cvta/, "converts the address of one memory space to a generic address"],
  [/^cvt/, "converts between types"],
  [/^(ex2|lg2|sin|cos|rcp|rsqrt|sqrt)/, "a function of the special function unit, or (.rn) exactly rounded"],
  [/^(min|max)/, "the smaller or larger (.NaN: NaN if one is)"],
  [/^ret/, "ends the thread"],
];

const AMDGCN: [RegExp, string][] = [
  [/^s_waitcnt/, "waits for outstanding memory accesses"],
  [/^s_delay_alu/, "waits for the result of a recent instruction: the operand says how many instructions ago"],
  [/^s_barrier/, "waits until every wave of the group arrives"],
  [/^s_load/, "reads values that are the same for the whole wave, such as arguments of the kernel"],
  [/^s_endpgm/, "ends the wave"],
  [/^s_c?branch/, "jumps, for the whole wave"],
  [/^s_.*exec|saveexec/, "switches lanes off and on: how a wave branches"],
  [/^ds_(read|load)/, "reads memory that the work-items of a group share"],
  [/^ds_(write|store)/, "writes memory that the work-items of a group share"],
  [/^(global|flat|buffer)_load/, "reads the GPU's memory"],
  [/^(global|flat|buffer)_store/, "writes the GPU's memory"],
  [/^(buffer|scratch)_/, "private memory of a work-item, or a cache operation"],
  [/^v_(pk_)?(fma|fmac|mad)/, "multiply-add of every lane"],
  [/^v_cndmask/, "one of two values in every lane, by a mask"],
  [/^v_cmp/, "compares in every lane, into a mask"],
  [/^v_(exp|log|rcp|rsq|sqrt|sin|cos)/, "a function of the transcendental unit, in every lane"],
  [/^v_/, "an operation of every lane of the wave"],
  [/^s_/, "an operation of the scalar unit: once for the whole wave"],
];

const LLVM: Record<string, string> = {
  getelementptr: "computes an address; accesses no memory",
  phi: "a value that depends on the previous block, such as a loop variable",
  select: "one of two values, by a condition",
  shufflevector: "rearranges or repeats lanes",
  insertelement: "replaces one lane",
  extractelement: "takes one lane",
  br: "jumps, perhaps by a condition",
  icmp: "compares integers",
  fcmp: "compares floats",
  freeze: "turns an undefined value into some fixed one",
};

/** Returns the meaning of an opcode in a language; null if it is unknown. */
export function explain(language: string, word: string): string | null {
  const name = word.trim();
  if (language === "uops") return UOPS[name] ?? null;
  if (language.startsWith("llvm")) return LLVM[name] ?? null;
  const assembly = { asm: ASM, ptx: PTX, amdgcn: AMDGCN }[language];
  return assembly?.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}
