#pragma once

#include <cmath>
#include <cstdint>

namespace posenc {

/// The factor by which a token embedding is multiplied before anything is added to it.
///
///     Scale::None      no multiplication at all
///     Scale::SqrtDim   sqrt(d_model), "Attention Is All You Need", section 3.4
///     Scale(0.5)       a value of your own
class Scale {
 public:
  static const Scale None;
  static const Scale SqrtDim;

  Scale(double value) : kind_(Kind::Value), value_(value) {}  // NOLINT: a number is a scale

  bool is_none() const noexcept { return kind_ == Kind::None; }
  bool is_sqrt_dim() const noexcept { return kind_ == Kind::SqrtDim; }

  /// The factor for width `dim`; 1 for `None`. SqrtDim is `dim ** 0.5` as Python computes it,
  /// which is pow(), not sqrt(): the two may differ in the last bit of a double.
  double factor(int64_t dim) const {
    return is_sqrt_dim() ? std::pow(static_cast<double>(dim), 0.5) : value_;
  }

 private:
  enum class Kind { None, SqrtDim, Value };
  explicit Scale(Kind kind) : kind_(kind), value_(1.0) {}

  Kind kind_;
  double value_;
};

inline const Scale Scale::None{Scale::Kind::None};
inline const Scale Scale::SqrtDim{Scale::Kind::SqrtDim};

}  // namespace posenc
