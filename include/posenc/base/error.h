#pragma once

#include <stdexcept>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The base of the errors of what knows no tensors, such as tokenizers. what() has the form
/// `[function] file: rule. Got value`, as far as the parts are known.
///
/// What has tensors in its signature throws c10::Error, which is another class.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown for an argument that breaks a rule: c10::ValueError of what knows no tensors.
class ArgumentError : public Error {
 public:
  using Error::Error;
};

}  // namespace posenc
