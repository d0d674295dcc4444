; float16 to float32 and back by integer arithmetic, under the names that LLVM calls on CPUs without such instructions.

define float @__extendhfsf2(half %x) {
  %bits = bitcast half %x to i16
  %u = zext i16 %bits to i32
  %s = and i32 %u, 32768
  %sign = shl i32 %s, 16
  %size = and i32 %u, 32767
  %moved = shl i32 %size, 13
  %small = bitcast i32 %moved to float
  %scaled = fmul float %small, 0x46F0000000000000 ; 2 ** 112: the exponents' biases differ by that, subnormals too
  %number = bitcast float %scaled to i32
  %special = or i32 %moved, 2139095040 ; infinity and NaN keep their fraction
  %is_special = icmp uge i32 %size, 31744
  %chosen = select i1 %is_special, i32 %special, i32 %number
  %signed = or i32 %chosen, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

define half @__truncsfhf2(float %x) {
  %u = bitcast float %x to i32
  %high = lshr i32 %u, 16
  %sign = and i32 %high, 32768
  %size = and i32 %u, 2147483647
  %last = lshr i32 %size, 13
  %odd = and i32 %last, 1
  %rebiased = sub i32 %size, 939524096 ; (127 - 15) << 23
  %up = add i32 %rebiased, 4095
  %rounded = add i32 %up, %odd
  %normal = lshr i32 %rounded, 13
  %positive = bitcast i32 %size to float
  %shifted = fadd float %positive, 0.5 ; leaves the subnormal's bits, rounded, at the end
  %raw = bitcast float %shifted to i32
  %subnormal = sub i32 %raw, 1056964608
  %is_subnormal = icmp ult i32 %size, 947912704 ; 2 ** -14
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %is_large = icmp uge i32 %size, 1199566848 ; 65520 and more round to infinity
  %bounded = select i1 %is_large, i32 31744, i32 %finite
  %is_nan = icmp ugt i32 %size, 2139095040
  %chosen = select i1 %is_nan, i32 32256, i32 %bounded
  %signed = or i32 %chosen, %sign
  %bits = trunc i32 %signed to i16
  %result = bitcast i16 %bits to half
  ret half %result
}
