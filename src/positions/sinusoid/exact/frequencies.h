// Frequencies in turns per position, exact to 190 bits, and the Ziv fallback for entries that
// float64 cannot decide.
#pragma once
#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/sincos_types.h"
#include "positions/sinusoid/exact/bigfloat.h"

namespace posenc::exact {

class Frequencies {
 public:
  // Throws std::invalid_argument with the offending value if base is not positive and finite, scale
  // is not finite, denominator or count is not positive, or an exponent is beyond 2^31.
  explicit Frequencies(const FrequencySpec& spec);

  const FrequencyView& view() const { return view_; }
  const FrequencySpec& spec() const { return spec_; }

  // The correctly rounded sin (cosine: cos) of position * w_k, as a double that holds it exactly.
  // Always terminates: for a position and a frequency that are algebraic and not 0, the sine is
  // transcendental (Lindemann-Weierstrass), so no entry is a tie; with times_pi the only rational
  // values are 0, 1/2 and 1 (Niven), which are not ties either, and zeros are recognised as such.
  double entry(int64_t k, bool cosine, double position, Format format) const;

  // How many entries the Ziv fallback has decided, and how many of them needed more than the stored
  // 256 bits.
  int64_t decided() const { return decided_; }
  int64_t decided_beyond_stored() const { return decided_beyond_stored_; }
  int first_limbs = 4;  // for tests: start the Ziv fallback at a higher precision

 private:
  Big turns(int64_t k, int limbs) const;
  Big stored_turns(int64_t k) const;
  bool turns_are_exact(int64_t k) const;
  void fill(int64_t k, const Big& turns);

  struct Stored {
    uint64_t m[4];
    int64_t exponent;
    int sign;
  };
  FrequencySpec spec_;
  FrequencyView view_;
  std::vector<Stored> stored_;
  std::vector<double> arrays_;
  mutable std::atomic<int64_t> decided_{0};
  mutable std::atomic<int64_t> decided_beyond_stored_{0};
};

}  // namespace posenc::exact
