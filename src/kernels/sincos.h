// Requests of the exact sinusoid kernels (isa/sincos_rows.cpp, isa/sincos_rows_pair.cpp), and the
// functions that take them. C headers only.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "kernels/sincos_types.h"

namespace posenc::kernels::sincos {

// Writes `count` rows whose angles are first + second[i]. A row holds cos[padded] and sin[padded]
// in float64, followed by the low parts of both in a row of pairs.
struct RowsRequest {
  const double* first = nullptr;
  const double* second = nullptr;
  int64_t second_stride = 0;
  int64_t count = 1;
  const double* sin_bound = nullptr;  // per frequency: error bound of the product's sine
  double cos_bound = 0;
  int64_t padded = 0;
  const RowLayout* layout = nullptr;
  Format format = Format::Float32;
  void* out = nullptr;  // the first row's first element
  // Called for an entry whose rounding the error bound leaves open; row i has the position
  // `position + i * position_step`.
  double (*ziv_fallback)(const void* context, int64_t k, bool cosine, double position,
                         Format format) = nullptr;
  const void* context = nullptr;
  double position = 0;
  double position_step = 0;
  // Set if the bounds are the standard ones and no row holds a NaN: the float formats may then test
  // all entries of a block at once.
  bool quick = false;
  // Use non-temporal stores for whole blocks that are aligned for them.
  bool stream = false;
};

struct SincosKernels {
  // cos and sin of (whole + part) * w: whole is an integer with |whole| <= 2^32, |part| <= 1/2.
  void (*row)(const FrequencyView& f, double whole, double part, double* out);
  void (*row_pair)(const FrequencyView& f, double whole, double part, double* out);
  // bounds[k] = bound * min(1, reach[k] * span)
  void (*bounds)(const double* reach, int64_t padded, double span, double bound, double* out);
  void (*write)(const RowsRequest& request);       // Float32, BFloat16, Float16
  void (*write_pair)(const RowsRequest& request);  // Float64, from rows of pairs
  void (*stream_end)();                            // to be called once after streamed rows
};

}  // namespace posenc::kernels::sincos
