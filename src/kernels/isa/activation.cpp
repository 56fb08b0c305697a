// Activations, in place, alone or as the gate of other values. Compiled once per instruction set.
//
// The reference paths are at::relu, also squared, at::gelu, also "tanh", at::silu and
// x * sigmoid(1.702 x).
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

// erf as a rational function (Eigen's), within 1e-7 up to |x| = 4, beyond which it is 1.
POSENC_INLINE Floats error_function(Floats x) {
  x = maximum(broadcast(-4.0f), minimum(broadcast(4.0f), x));
  const Floats x2 = x * x;
  const Floats p =
      polynomial(x2, {-2.72614225801306e-10f, 2.77068142495902e-08f, -2.10102402082508e-06f,
                      -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                      -1.60960333262415e-02f});
  const Floats q =
      polynomial(x2, {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                      -7.37332916720468e-03f, -1.42647390514189e-02f});
  return x * p / q;
}

struct ReLU {
  static POSENC_INLINE Floats of(Floats x) { return maximum(broadcast(0.0f), x); }
};

struct ReLUSquared {
  static POSENC_INLINE Floats of(Floats x) { return ReLU::of(x) * ReLU::of(x); }
};

struct GELU {
  static POSENC_INLINE Floats of(Floats x) {
    return broadcast(0.5f) * x *
           (broadcast(1.0f) + error_function(x * broadcast(0.70710678118654752f)));
  }
};

struct SiLU {
  static POSENC_INLINE Floats of(Floats x) { return x / (broadcast(1.0f) + exponential(-x)); }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u).
struct GELUTanh {
  static POSENC_INLINE Floats of(Floats x) {
    const Floats twice = broadcast(-1.5957691216057308f) * (x + broadcast(0.044715f) * x * x * x);
    return x / (broadcast(1.0f) + exponential(twice));
  }
};

struct QuickGELU {
  static POSENC_INLINE Floats of(Floats x) {
    return x / (broadcast(1.0f) + exponential(broadcast(-1.702f) * x));
  }
};

template <typename F>
void activate(float* x, int64_t count) {
  by_sixteen(count, [&](int64_t i, int64_t n) {
    const Wide w = read(x + i, n);
    write(x + i, each([&](int part) { return F::of(w.part[part]); }), n);
  });
}

template <typename F>
void gate(float* x, const float* y, int64_t count) {
  by_sixteen(count, [&](int64_t i, int64_t n) {
    const Wide w = read(x + i, n), gated = read(y + i, n);
    write(x + i, each([&](int part) { return F::of(w.part[part]) * gated.part[part]; }), n);
  });
}

template <typename F>
constexpr ActivationKernel functions = {activate<F>, gate<F>};

}  // namespace

const ActivationKernels activation_kernels = {functions<ReLU>,      functions<GELU>,
                                              functions<SiLU>,      functions<GELUTanh>,
                                              functions<QuickGELU>, functions<ReLUSquared>};

}  // namespace posenc::kernels::inference::POSENC_ISA
