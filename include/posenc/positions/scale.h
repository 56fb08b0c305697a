#pragma once

#include <cmath>
#include <cstdint>
#include <ostream>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The factor that token embeddings are multiplied by before positions are added.
///
///     Scale::None      no multiplication at all
///     Scale::SqrtDim   sqrt(d_model), "Attention Is All You Need", section 3.4
///     Scale(0.5)       a value of your own
class Scale {
 public:
  static const Scale None;     ///< no multiplication
  static const Scale SqrtDim;  ///< sqrt(d_model)

  /// A fixed factor.
  Scale(double value) : kind_(Kind::Value), value_(value) {}  // NOLINT: implicit by design

  /// Whether this is Scale::None.
  bool is_none() const noexcept { return kind_ == Kind::None; }
  /// Whether this is Scale::SqrtDim.
  bool is_sqrt_dim() const noexcept { return kind_ == Kind::SqrtDim; }

  /// Returns the factor for embeddings of width `dim`; 1 for `None`. SqrtDim is computed by pow()
  /// and not by sqrt(), as Python computes `dim ** 0.5`: the last bit of the two may differ.
  double factor(int64_t dim) const {
    return is_sqrt_dim() ? std::pow(static_cast<double>(dim), 0.5) : value_;
  }

  /// Whether both are the same factor for every width.
  friend bool operator==(const Scale& a, const Scale& b) {
    return a.kind_ == b.kind_ && a.value_ == b.value_;
  }
  /// Writes `none`, `sqrt(d_model)` or the value.
  friend std::ostream& operator<<(std::ostream& stream, const Scale& scale) {
    if (scale.kind_ == Kind::Value) return stream << scale.value_;
    return stream << (scale.is_none() ? "none" : "sqrt(d_model)");
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
