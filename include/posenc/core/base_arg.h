#pragma once

#include <utility>

// A TORCH_ARG of a base class whose setters return the derived class, `Derived`.
#define POSENC_BASE_ARG(T, name)                           \
 public:                                                   \
  Derived& name(T value) {                                 \
    this->name##_ = std::move(value);                      \
    return static_cast<Derived&>(*this);                   \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 protected:                                                \
  T name##_
