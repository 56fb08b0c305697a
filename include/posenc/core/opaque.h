#pragma once

#include <memory>

#include "posenc/export.h"

namespace posenc {
namespace detail POSENC_EXPORT {

/// A member whose type is defined only inside the library. It has value semantics: copying the
/// containing object copies it with T's copy constructor and assignment.
template <typename T>
class Opaque {
 public:
  Opaque();
  Opaque(const Opaque& other);             ///< with a copy of the value
  Opaque& operator=(const Opaque& other);  ///< assigns the value
  ~Opaque();

  T& operator*() const noexcept { return *value_; }        ///< the value
  T* operator->() const noexcept { return value_.get(); }  ///< the value's members
  T* get() const noexcept { return value_.get(); }         ///< the value's address

 private:
  std::unique_ptr<T> value_;
};

}  // namespace detail
}  // namespace posenc
