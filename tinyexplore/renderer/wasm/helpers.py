"""Functions that kernels call, as text: operations that take several instructions.

A function is written into a module only if it is called.
"""

from __future__ import annotations

_DIVIDE = """\
  (func $div_{0} (param $x {0}) (param $y {0}) (result {0}) ;; by 0: 0; the least integer by -1 wraps
    (if (result {0}) ({0}.eqz (local.get $y))
      (then ({0}.const 0))
      (else (if (result {0}) ({0}.eq (local.get $y) ({0}.const -1))
        (then ({0}.sub ({0}.const 0) (local.get $x)))
        (else ({0}.div_s (local.get $x) (local.get $y)))))))"""

_DIVIDE_BY_ALL_BUT_0 = """\
  (func ${1}_{0}_{2} (param $x {0}) (param $y {0}) (result {0}) ;; by 0: 0
    (if (result {0}) ({0}.eqz (local.get $y))
      (then ({0}.const 0))
      (else ({0}.{1}_{2} (local.get $x) (local.get $y)))))"""

_F16_TO_F32 = """\
  (func $f16_to_f32 (param $bits v128) (result v128) (local $rest v128) (local $moved v128) ;; of the low half of lanes
    (local.set $rest (v128.and (local.get $bits) (v128.const i32x4 0x7fff 0x7fff 0x7fff 0x7fff)))
    (local.set $moved (i32x4.shl (local.get $rest) (i32.const 13)))
    (v128.or
      (i32x4.shl (v128.and (local.get $bits) (v128.const i32x4 0x8000 0x8000 0x8000 0x8000)) (i32.const 16))
      (v128.bitselect
        (v128.or (local.get $moved) (v128.const i32x4 0x7f800000 0x7f800000 0x7f800000 0x7f800000)) ;; infinity, NaN
        (f32x4.mul (local.get $moved) (f32x4.splat (f32.const 5192296858534828e18))) ;; 2**112: subnormals too
        (i32x4.ge_s (local.get $rest) (v128.const i32x4 0x7c00 0x7c00 0x7c00 0x7c00)))))"""

_F32_TO_F16 = """\
  (func $f32_to_f16 (param $x v128) (result v128) (local $size v128) ;; to the low half of lanes
    (local.set $size (v128.and (local.get $x) (v128.const i32x4 0x7fffffff 0x7fffffff 0x7fffffff 0x7fffffff)))
    (v128.or
      (v128.and (i32x4.shr_u (local.get $x) (i32.const 16)) (v128.const i32x4 0x8000 0x8000 0x8000 0x8000))
      (v128.bitselect
        (v128.const i32x4 0x7e00 0x7e00 0x7e00 0x7e00) ;; NaN
        (v128.bitselect
          (v128.const i32x4 0x7c00 0x7c00 0x7c00 0x7c00) ;; 65520 and more round to infinity
          (v128.bitselect
            (i32x4.sub (f32x4.add (local.get $size) (f32x4.splat (f32.const 0.5))) (i32x4.splat (i32.const 0x3f000000)))
            (i32x4.shr_u
              (i32x4.add
                (i32x4.sub (local.get $size) (i32x4.splat (i32.const 0x37fff001)))
                (v128.and (i32x4.shr_u (local.get $size) (i32.const 13)) (v128.const i32x4 1 1 1 1)))
              (i32.const 13))
            (i32x4.lt_s (local.get $size) (i32x4.splat (i32.const 0x38800000)))) ;; subnormal
          (i32x4.ge_s (local.get $size) (i32x4.splat (i32.const 0x477ff000))))
        (i32x4.gt_s (local.get $size) (i32x4.splat (i32.const 0x7f800000))))))"""

_F32_TO_BF16 = """\
  (func $f32_to_bf16 (param $x v128) (result v128) ;; to the low half of lanes
    (v128.bitselect
      (v128.const i32x4 0x7fc0 0x7fc0 0x7fc0 0x7fc0) ;; NaN
      (i32x4.shr_u
        (i32x4.add
          (i32x4.add (local.get $x) (v128.const i32x4 0x7fff 0x7fff 0x7fff 0x7fff))
          (v128.and (i32x4.shr_u (local.get $x) (i32.const 16)) (v128.const i32x4 1 1 1 1)))
        (i32.const 16))
      (f32x4.ne (local.get $x) (local.get $x))))"""

_F64_TO_ODD_F32 = """\
  (func $f64_to_odd_f32 (param $x v128) (result v128) (local $f v128) (local $back v128) (local $inexact v128)
    ;; float32s that end in a 1 where they are inexact, so that a second rounding sees what was lost
    (local.set $f (f32x4.demote_f64x2_zero (local.get $x)))
    (local.set $back (f64x2.promote_low_f32x4 (local.get $f)))
    (local.set $inexact
      (v128.and (f64x2.ne (local.get $back) (local.get $x)) (f64x2.eq (local.get $x) (local.get $x))))
    (local.set $back (f64x2.gt (f64x2.abs (local.get $back)) (f64x2.abs (local.get $x)))) ;; too large: one less
    (v128.or
      (i32x4.add
        (local.get $f)
        (i8x16.shuffle 0 1 2 3 8 9 10 11 0 1 2 3 8 9 10 11 (local.get $back) (local.get $back)))
      (v128.and
        (i8x16.shuffle 0 1 2 3 8 9 10 11 0 1 2 3 8 9 10 11 (local.get $inexact) (local.get $inexact))
        (v128.const i32x4 1 1 0 0))))"""

_F64_TO_U64 = """\
  (func $f64_to_u64 (param $x f64) (result i64) ;; what is negative wraps
    (if (result i64) (f64.ge (local.get $x) (f64.const 9223372036854775808))
      (then
        (i64.xor
          (i64.trunc_sat_f64_s
            (select
              (f64.sub (local.get $x) (f64.const 9223372036854775808))
              (f64.const -inf)
              (f64.lt (local.get $x) (f64.const 18446744073709551616))))
          (i64.const -9223372036854775808)))
      (else
        (i64.trunc_sat_f64_s (select (local.get $x) (f64.const -inf) (f64.eq (local.get $x) (local.get $x)))))))"""

# {0}: float, {1}: integer, {2}: the first number too large for it; this number, and NaN, become the least integer, as
# on x86
_TO_INT = """\
  (func ${0}_to_{1} (param $x {0}) (result {1})
    ({1}.trunc_sat_{0}_s
      (select (local.get $x) ({0}.const -inf) ({0}.lt (local.get $x) ({0}.const {2})))))"""

# {0}: shape of the floats, {1}: the instruction
_TO_INTS = """\
  (func ${0}_to_i32 (param $x v128) (result v128)
    ({1}
      (v128.bitselect
        (local.get $x)
        ({0}.splat ({2}.const -inf))
        ({0}.lt (local.get $x) ({0}.splat ({2}.const 2147483648))))))"""

_FMOD = """\
  (func $fmod (param $x f64) (param $y f64) (result f64) ;; exact: bit by bit, as in musl
    (local $a i64) (local $b i64) (local $rest i64) (local $ea i64) (local $eb i64)
    (local.set $a (i64.reinterpret_f64 (local.get $x)))
    (local.set $b (i64.reinterpret_f64 (local.get $y)))
    (local.set $ea (i64.and (i64.shr_u (local.get $a) (i64.const 52)) (i64.const 0x7ff)))
    (local.set $eb (i64.and (i64.shr_u (local.get $b) (i64.const 52)) (i64.const 0x7ff)))
    (if (i32.or (i32.or (f64.eq (local.get $y) (f64.const 0)) (f64.ne (local.get $y) (local.get $y)))
                (i64.eq (local.get $ea) (i64.const 0x7ff)))
      (then (return (f64.const nan))))
    (if (f64.lt (f64.abs (local.get $x)) (f64.abs (local.get $y))) (then (return (local.get $x))))
    (if (i64.eqz (local.get $ea))
      (then
        (local.set $ea (i64.sub (i64.const 0) (i64.clz (i64.shl (local.get $a) (i64.const 12)))))
        (local.set $a (i64.shl (local.get $a) (i64.sub (i64.const 1) (local.get $ea)))))
      (else (local.set $a (i64.or (i64.and (local.get $a) (i64.const 0xfffffffffffff)) (i64.const 0x10000000000000)))))
    (if (i64.eqz (local.get $eb))
      (then
        (local.set $eb (i64.sub (i64.const 0) (i64.clz (i64.shl (local.get $b) (i64.const 12)))))
        (local.set $b (i64.shl (local.get $b) (i64.sub (i64.const 1) (local.get $eb)))))
      (else (local.set $b (i64.or (i64.and (local.get $b) (i64.const 0xfffffffffffff)) (i64.const 0x10000000000000)))))
    (loop $steps
      (local.set $rest (i64.sub (local.get $a) (local.get $b)))
      (if (i64.eqz (local.get $rest)) (then (return (f64.copysign (f64.const 0) (local.get $x)))))
      (if (i64.gt_s (local.get $rest) (i64.const 0)) (then (local.set $a (local.get $rest))))
      (if (i64.gt_s (local.get $ea) (local.get $eb))
        (then
          (local.set $a (i64.shl (local.get $a) (i64.const 1)))
          (local.set $ea (i64.sub (local.get $ea) (i64.const 1)))
          (br $steps))))
    (local.set $rest (i64.sub (i64.clz (local.get $a)) (i64.const 11)))
    (local.set $a (i64.shl (local.get $a) (local.get $rest)))
    (local.set $ea (i64.sub (local.get $ea) (local.get $rest)))
    (f64.copysign
      (f64.reinterpret_i64
        (if (result i64) (i64.gt_s (local.get $ea) (i64.const 0))
          (then (i64.or (i64.sub (local.get $a) (i64.const 0x10000000000000)) (i64.shl (local.get $ea) (i64.const 52))))
          (else (i64.shr_u (local.get $a) (i64.sub (i64.const 1) (local.get $ea))))))
      (local.get $x)))"""

HELPERS = {
    "fmod": _FMOD,
    "div_i32": _DIVIDE.format("i32"),
    "div_i64": _DIVIDE.format("i64"),
    **{
        f"{op}_{kind}_{sign}": _DIVIDE_BY_ALL_BUT_0.format(kind, op, sign)
        for kind in ("i32", "i64")
        for op, sign in (("div", "u"), ("rem", "s"), ("rem", "u"))
    },
    "f16_to_f32": _F16_TO_F32,
    "f32_to_f16": _F32_TO_F16,
    "f32_to_bf16": _F32_TO_BF16,
    "f64_to_odd_f32": _F64_TO_ODD_F32,
    "f64_to_u64": _F64_TO_U64,
    **{
        f"{float_kind}_to_{kind}": _TO_INT.format(float_kind, kind, limit)
        for float_kind in ("f32", "f64")
        for kind, limit in (("i32", 1 << 31), ("i64", 1 << 63))
    },
    "f32x4_to_i32": _TO_INTS.format("f32x4", "i32x4.trunc_sat_f32x4_s", "f32"),
    "f64x2_to_i32": _TO_INTS.format("f64x2", "i32x4.trunc_sat_f64x2_s_zero", "f64"),
}
