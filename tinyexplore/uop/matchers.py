"""Matching functions of the passes' rules, by the digest of their text: what they ask for are their globals.

Made by `python -m tinyexplore.codegen.matchers`, which says why; not to be changed by hand.
"""


def match_fdbe4e93ba510f08(root, function, ctx):
  found = function(root)
  if found is not None and found is not root: return found
  return None


def match_39a26829cbdf91a0(root, function, ctx):
  found = function(root, ctx)
  if found is not None and found is not root: return found
  return None


def match_2c3633d1aecdbda7(root, function, ctx):
  if all([src.op in k1 for src in root.src]):
    found = function(root)
    if found is not None and found is not root: return found
  return None


def match_8ebbbb56e321b44b(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    found = function(n1, ctx)
    if found is not None and found is not root: return found
  return None


def match_9318ced1f6746778(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    found = function(root, n1)
    if found is not None and found is not root: return found
  return None


def match_af918227cb7e5d31(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    found = function(root, n1, ctx)
    if found is not None and found is not root: return found
  return None


def match_ecd6a2850c1132a3(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    if n1.dtype.scalar in k2:
      found = function(root, n1)
      if found is not None and found is not root: return found
  return None


def match_92386d7206faa5f2(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    if n1.op is k2 and len(n1.src) == 1:
      n3 = n1.src[0]
      found = n3
      if found is not None and found is not root: return found
  return None


def match_50085ed05ad9ef49(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    if n1.op is k2 and len(n1.src) == 1:
      n3 = n1.src[0]
      if n3.dtype.scalar in k4:
        found = function(root, n1, n3)
        if found is not None and found is not root: return found
  return None


def match_c84eba4f82cbf252(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    if n1.op is k2 and len(n1.src) == 3:
      n3 = n1.src[0]
      n4 = n1.src[1]
      n5 = n1.src[2]
      if n5.op is k6 and n5.arg == k7:
        found = function(root)
        if found is not None and found is not root: return found
  return None


def match_0c0ba510babb5b82(root, function, ctx):
  if len(root.src) == 1:
    n1 = root.src[0]
    if n1.op is k2:
      found = function(root, n1)
      if found is not None and found is not root: return found
  return None


def match_4c689d425896cf0a(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    found = function(n1, n2, ctx)
    if found is not None and found is not root: return found
  return None


def match_8bdd9e32d7a75ff6(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    found = function(root)
    if found is not None and found is not root: return found
  return None


def match_17ed9f684c719940(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    found = function(root, n1, n2)
    if found is not None and found is not root: return found
  return None


def match_8de147b9a9977b48(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    found = function(root, n1, n2, ctx)
    if found is not None and found is not root: return found
  return None


def match_a0a6b2b26cf6256f(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.dtype.scalar in k3:
      if n2.dtype.scalar in k4 and n2 is n1:
        found = k5(root.dtype, k6)
        if found is not None and found is not root: return found
  return None


def match_7833e9eacc21c87a(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.dtype.scalar in k3:
      if n2.dtype.scalar in k4:
        found = function(root)
        if found is not None and found is not root: return found
  return None


def match_e3a41b02333db076(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.dtype.scalar in k3:
      if n2.dtype.scalar in k4:
        found = function(root, n1, n2)
        if found is not None and found is not root: return found
  return None


def match_007bada365b045f3(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.dtype.scalar in k3:
      if n2.op is k4 and n2.arg == k5:
        found = k6(root.dtype, k7)
        if found is not None and found is not root: return found
  return None


def match_241394fd5034dd6b(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.dtype.scalar in k3:
      if n2.op is k4 and n2.arg == k5:
        found = n1
        if found is not None and found is not root: return found
  return None


def match_94d2b301ecbba125(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3 and len(n1.src) == 1:
      n4 = n1.src[0]
      if n4.dtype.scalar in k5:
        if n2.op is k6:
          found = function(root, n4, n2)
          if found is not None and found is not root: return found
  return None


def match_ca2a2fceca87ea12(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3 and len(n1.src) == 2:
      n4 = n1.src[0]
      n5 = n1.src[1]
      if n5.op is k6:
        if n2.op is k7:
          found = function(n4, n5, n2)
          if found is not None and found is not root: return found
  return None


def match_c5c234eb8a2b87ab(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3 and len(n1.src) == 2:
      p6 = n1.src
      for n4, n5 in (p6, (p6[1], p6[0])):
        if n4.dtype.scalar in k7:
          if n5.op is k8 and n5.dtype.scalar in k9:
            if n2.op is k10 and n2.dtype.scalar in k11:
              found = function(n4, n5, n2)
              if found is not None and found is not root: return found
  return None


def match_e932795ca4cc27ce(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3 and len(n1.src) == 2:
      p6 = n1.src
      for n4, n5 in (p6, (p6[1], p6[0])):
        if n4.dtype.scalar in k7:
          if n5.op is k8 and n5.dtype.scalar in k9:
            if n2.op is k10 and n2.dtype.scalar in k11:
              found = function(root, n4, n5, n2)
              if found is not None and found is not root: return found
  return None


def match_7caf31e2f4bd9fb9(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3 and n1.arg == k4:
      if n2.dtype.scalar in k5:
        found = k6(root.dtype, k7)
        if found is not None and found is not root: return found
  return None


def match_0544a7529e869c53(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3 and n1.dtype.scalar in k4:
      if n2.op is k5 and len(n2.src) == 2:
        p8 = n2.src
        for n6, n7 in (p8, (p8[1], p8[0])):
          if n6.dtype.scalar in k9:
            if n7.op is k10 and n7.dtype.scalar in k11:
              found = function(root, n6, n1, n7)
              if found is not None and found is not root: return found
  return None


def match_088b7ffbe6b34393(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3:
      found = function(root, n1, n2)
      if found is not None and found is not root: return found
  return None


def match_c3092fd004cb0f68(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n2.op is k3 and n2.arg == k4:
      found = k5(root.dtype, k6)
      if found is not None and found is not root: return found
  return None


def match_d60dd00b2abb9ff2(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n2.op is k3 and n2.arg == k4:
      found = n1
      if found is not None and found is not root: return found
  return None


def match_3796ef8c2e2018d5(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n2.op is k3:
      found = function(n1, n2)
      if found is not None and found is not root: return found
  return None


def match_43af1d172fba1d30(root, function, ctx):
  if len(root.src) == 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n2.op is k3:
      found = function(root, n1, n2)
      if found is not None and found is not root: return found
  return None


def match_c3f7ac83c58902a7(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      found = function(root, n1, n2)
      if found is not None and found is not root: return found
  return None


def match_4972a242dd156670(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.dtype.scalar in k4:
        if n2.dtype.scalar in k5 and n2 is n1:
          found = k6(root.dtype, k7)
          if found is not None and found is not root: return found
  return None


def match_ead2fdbb3b081a85(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.dtype.scalar in k4:
        if n2.dtype.scalar in k5 and n2 is n1:
          found = n1
          if found is not None and found is not root: return found
  return None


def match_ebf240c5cd548849(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.dtype.scalar in k4:
        if n2.op is k5 and n2.arg == k6:
          found = k7(root.dtype, k8)
          if found is not None and found is not root: return found
  return None


def match_d87e5b56da47b774(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.dtype.scalar in k4:
        if n2.op is k5 and n2.arg == k6:
          found = n1
          if found is not None and found is not root: return found
  return None


def match_1545f37ea34cb2d1(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.dtype.scalar in k4:
        if n2.op is k5:
          found = function(root, n1, n2)
          if found is not None and found is not root: return found
  return None


def match_9709fc2316cea30f(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.op is k4 and len(n1.src) == 2:
        n5 = n1.src[0]
        n6 = n1.src[1]
        if n2.op is k7 and len(n2.src) == 2:
          n8 = n2.src[0]
          n9 = n2.src[1]
          if n9 is n6:
            found = function(root, n1, n2, n5, n8)
            if found is not None and found is not root: return found
  return None


def match_2d03f03ff3e054f1(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.op is k4 and len(n1.src) == 2:
        n5 = n1.src[0]
        n6 = n1.src[1]
        if n2.op is k7:
          found = function(n5, n6, n2)
          if found is not None and found is not root: return found
  return None


def match_681cd4dbab216b9d(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.op is k4 and len(n1.src) == 2:
        p7 = n1.src
        for n5, n6 in (p7, (p7[1], p7[0])):
          if n5.dtype.scalar in k8:
            if n6.op is k9 and n6.arg == k10:
              if n2.op is k11 and n2.arg == k12:
                found = n5
                if found is not None and found is not root: return found
  return None


def match_194dd256873fa161(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.op is k4 and len(n1.src) == 2:
        p7 = n1.src
        for n5, n6 in (p7, (p7[1], p7[0])):
          if n5.dtype.scalar in k8:
            if n6.op is k9:
              if n2.op is k10:
                found = function(n5, n6, n2)
                if found is not None and found is not root: return found
  return None


def match_d4fd951e47f3190c(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.op is k4 and len(n1.src) == 2:
        p7 = n1.src
        for n5, n6 in (p7, (p7[1], p7[0])):
          if n6.op is k8:
            found = function(root, n5, n2, n6)
            if found is not None and found is not root: return found
  return None


def match_e61a468779ad3669(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n1.op is k4 and len(n1.src) == 2:
        p7 = n1.src
        for n5, n6 in (p7, (p7[1], p7[0])):
          if n6.op is k8:
            if n2.op is k9:
              found = function(n5, n6, n2)
              if found is not None and found is not root: return found
  return None


def match_48dbf0eac0616de7(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n2 is n1:
        found = n1
        if found is not None and found is not root: return found
  return None


def match_b99d65c721168453(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n2.op is k4 and n2.arg == k5:
        found = k6(root.dtype, k7)
        if found is not None and found is not root: return found
  return None


def match_1af6276d9278a8fd(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n2.op is k4 and n2.arg == k5:
        found = n1
        if found is not None and found is not root: return found
  return None


def match_9ac2938e9a50b405(root, function, ctx):
  if len(root.src) == 2:
    p3 = root.src
    for n1, n2 in (p3, (p3[1], p3[0])):
      if n2.op is k4:
        found = function(n1, n2)
        if found is not None and found is not root: return found
  return None


def match_cbe60a7a0e4d03a8(root, function, ctx):
  if len(root.src) == 3:
    n1 = root.src[0]
    n2 = root.src[1]
    n3 = root.src[2]
    found = function(root, n1, n2, n3, ctx)
    if found is not None and found is not root: return found
  return None


def match_dc53a73f353deff6(root, function, ctx):
  if len(root.src) == 3:
    n1 = root.src[0]
    n2 = root.src[1]
    n3 = root.src[2]
    if n1.dtype.scalar in k4:
      if n2.op is k5 and len(n2.src) == 3:
        n6 = n2.src[0]
        n7 = n2.src[1]
        n8 = n2.src[2]
        if n6.dtype.scalar in k9 and n6 is n1:
          found = n1.alu(k10, n7, n3)
          if found is not None and found is not root: return found
  return None


def match_744563155b6c8ae9(root, function, ctx):
  if len(root.src) == 3:
    n1 = root.src[0]
    n2 = root.src[1]
    n3 = root.src[2]
    if n1.dtype.scalar in k4:
      if n3 is n2:
        found = n2
        if found is not None and found is not root: return found
  return None


def match_0f3aadf357c54e3b(root, function, ctx):
  if len(root.src) == 3:
    n1 = root.src[0]
    n2 = root.src[1]
    n3 = root.src[2]
    if n1.op is k4 and n1.arg == k5:
      found = n2
      if found is not None and found is not root: return found
  return None


def match_52423d4603edf67d(root, function, ctx):
  if len(root.src) == 3:
    n1 = root.src[0]
    n2 = root.src[1]
    n3 = root.src[2]
    if n1.op is k4 and n1.arg == k5:
      found = n3
      if found is not None and found is not root: return found
  return None


def match_947e2b879d5443e1(root, function, ctx):
  if len(root.src) == 3:
    n1 = root.src[0]
    n2 = root.src[1]
    n3 = root.src[2]
    if n3.op is k4 and n3.arg == k5:
      found = function(n1, n2)
      if found is not None and found is not root: return found
  return None


def match_a4e2f8270c568d40(root, function, ctx):
  if len(root.src) >= 0:
    found = function(root)
    if found is not None and found is not root: return found
  return None


def match_ef78c44ed92d4964(root, function, ctx):
  if len(root.src) >= 1:
    n1 = root.src[0]
    found = function(root, n1)
    if found is not None and found is not root: return found
  return None


def match_6a476707806f9d83(root, function, ctx):
  if len(root.src) >= 1:
    n1 = root.src[0]
    found = function(root, n1, ctx)
    if found is not None and found is not root: return found
  return None


def match_930054c39a007f9a(root, function, ctx):
  if len(root.src) >= 1:
    n1 = root.src[0]
    if n1.op is k2 and len(n1.src) == 3:
      n3 = n1.src[0]
      n4 = n1.src[1]
      n5 = n1.src[2]
      if n5.op is k6:
        found = function(root, n1, n3, n4, n5, ctx)
        if found is not None and found is not root: return found
  return None


def match_7641059f73f263e0(root, function, ctx):
  if len(root.src) >= 1:
    n1 = root.src[0]
    if n1.op is k2:
      found = function(root, n1)
      if found is not None and found is not root: return found
  return None


def match_d3ea82db5e7849e9(root, function, ctx):
  if len(root.src) >= 2:
    n1 = root.src[0]
    n2 = root.src[1]
    found = function(root, n1, n2)
    if found is not None and found is not root: return found
  return None


def match_5cd0c783f72bb190(root, function, ctx):
  if len(root.src) >= 2:
    n1 = root.src[0]
    n2 = root.src[1]
    if n1.op is k3:
      found = function(root, n1, n2)
      if found is not None and found is not root: return found
  return None


def match_ea083422ec89d3c8(root, function, ctx):
  if root.arg == k1 and len(root.src) == 1:
    n2 = root.src[0]
    found = function(root, n2, ctx)
    if found is not None and found is not root: return found
  return None
