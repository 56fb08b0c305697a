// Activations, in place. Compiled once per instruction set.
//
// The reference paths are at::relu, at::gelu (also "tanh"), at::silu and x * sigmoid(1.702 x).
#include "kernels/isa/by_sixteen.h"
#include "kernels/isa/exponential.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

template <typename F>
POSENC_INLINE void in_place(float* x, int64_t count, F f) {
  by_sixteen(count, [&](int64_t i, int64_t n) {
    const Wide w = read(x + i, n);
    write(x + i, each([&](int part) { return f(w.part[part]); }), n);
  });
}

void relu(float* x, int64_t n) {
  in_place(x, n, [](Floats v) { return maximum(broadcast(0.0f), v); });
}

void swish(float* x, int64_t n) {
  in_place(x, n, [](Floats v) { return v / (broadcast(1.0f) + exponential(-v)); });
}

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

void gelu(float* x, int64_t n) {
  in_place(x, n, [](Floats v) {
    return broadcast(0.5f) * v *
           (broadcast(1.0f) + error_function(v * broadcast(0.70710678118654752f)));
  });
}

// (1 + tanh(u)) / 2 = sigmoid(2 u).
void gelu_tanh(float* x, int64_t n) {
  in_place(x, n, [](Floats v) {
    const Floats twice = broadcast(-1.5957691216057308f) * (v + broadcast(0.044715f) * v * v * v);
    return v / (broadcast(1.0f) + exponential(twice));
  });
}

void quick_gelu(float* x, int64_t n) {
  in_place(x, n,
           [](Floats v) { return v / (broadcast(1.0f) + exponential(broadcast(-1.702f) * v)); });
}

}  // namespace

const ActivationKernels activation_kernels = {{relu, gelu, swish, gelu_tanh, quick_gelu}};

}  // namespace posenc::kernels::inference::POSENC_ISA
