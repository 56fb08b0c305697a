// Every preset: a name, where it comes from, and its axes. Adding one is adding an entry here.

#include "posenc/sinusoid/preset.h"

namespace posenc {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table = {
      {"notebook_000", "notebook 00, PositionalEncoding",
       "f = exp(arange(0, D, 2) * -(ln 1e4 / D)); sin, cos of p * f; interleaved",
       [](int64_t dim) { return SinusoidOptions(dim); }},
      {"notebook_001", "notebook 01, positional_encoding_table",
       "d = 1e4 ** (arange(0, D, 2) / D) over one row; sin, cos of p / d; interleaved",
       [](int64_t dim) {
         return SinusoidOptions(dim).frequency(Frequency::Power).phase(Phase::Quotient);
       }},
      {"notebook_002", "notebook 02, PositionalEncoding",
       "d = 1e4 ** (2i / D) over the whole grid; sin, cos of p / d; interleaved",
       [](int64_t dim) {
         return SinusoidOptions(dim)
             .frequency(Frequency::Power)
             .phase(Phase::Quotient)
             .power_shape(PowerShape::Grid);
       }},
      {"notebook_003", "notebook 03, PositionalEncoding", "as notebook_000",
       [](int64_t dim) { return SinusoidOptions(dim); }},
      {"notebook_004", "notebook 04, MyPositionEncoding",
       "f = 1 / 1e4 ** (arange(0, D, 2) / D); sin, cos of p * f; interleaved",
       [](int64_t dim) { return SinusoidOptions(dim).frequency(Frequency::Power); }},
  };
  return table;
}

}  // namespace posenc
