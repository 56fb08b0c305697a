#pragma once

// The members of Opaque, for the source that defines T and instantiates the class for it.

#include "posenc/core/opaque.h"

namespace posenc::detail {

template <typename T>
Opaque<T>::Opaque() : value_(std::make_unique<T>()) {}

template <typename T>
Opaque<T>::Opaque(const Opaque& other) : value_(std::make_unique<T>(*other.value_)) {}

template <typename T>
Opaque<T>& Opaque<T>::operator=(const Opaque& other) {
  *value_ = *other.value_;
  return *this;
}

template <typename T>
Opaque<T>::~Opaque() = default;

}  // namespace posenc::detail
