#pragma once

#include <set>
#include <string>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// An option of an optimiser, as accessors of options that may be changed return it: it reads as
/// the value, and assigning to it counts as setting the option.
template <typename T>
class OptionRef {
 public:
  /// Refers to an option by its value, its name, and the names of the options that were set.
  OptionRef(T& value, const char* name, std::set<std::string>& given)
      : value_(value), name_(name), given_(given) {}
  OptionRef(const OptionRef&) = default;  ///< refers to the same option

  /// The value.
  operator const T&() const noexcept { return value_; }  // NOLINT: implicit by design
  /// Sets the option.
  const OptionRef& operator=(const T& value) const {  // NOLINT: a reference, so const
    value_ = value;
    given_.insert(name_);
    return *this;
  }
  /// Sets the option to the value of another one.
  OptionRef& operator=(const OptionRef& other) {
    *this = other.value_;
    return *this;
  }
  /// Multiplies the option.
  const OptionRef& operator*=(const T& factor) const { return *this = value_ * factor; }
  /// Divides the option.
  const OptionRef& operator/=(const T& divisor) const { return *this = value_ / divisor; }
  /// Adds to the option.
  const OptionRef& operator+=(const T& summand) const { return *this = value_ + summand; }
  /// Subtracts from the option.
  const OptionRef& operator-=(const T& subtrahend) const { return *this = value_ - subtrahend; }

 private:
  T& value_;
  const char* name_;
  std::set<std::string>& given_;
};

}  // namespace posenc

// An option like that of TORCH_ARG that also records whether it was set. `Derived` is the class
// that the setter returns.
#define POSENC_OPTIMIZER_ARG(T, name)                                  \
 public:                                                               \
  Derived& name(const T& value) {                                      \
    this->name##_ = value;                                             \
    this->given_.insert(#name);                                        \
    return static_cast<Derived&>(*this);                               \
  }                                                                    \
  const T& name() const noexcept { return this->name##_; }             \
  OptionRef<T> name() { return {this->name##_, #name, this->given_}; } \
                                                                       \
 protected:                                                            \
  T name##_
