"""A small program in LLVM IR, for tests of compiling and linking."""

from __future__ import annotations

from tinyexplore.renderer import CompileOptions, Effort

A_LOOP = """
define void @add_vectors(ptr %data, i64 %stop) nounwind "prefer-vector-width"="512" {
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %acc = phi <16 x float> [ zeroinitializer, %entry ], [ %sum, %body ]
  %place = getelementptr inbounds float, ptr %data, i64 %i
  %value = load <16 x float>, ptr %place, align 4
  %sum = fadd <16 x float> %acc, %value
  %next = add nuw nsw i64 %i, 16
  %again = icmp slt i64 %next, %stop
  br i1 %again, label %body, label %done
done:
  store <16 x float> %sum, ptr %data, align 4
  ret void
}
"""
LIGHT = CompileOptions(Effort.LIGHT)
