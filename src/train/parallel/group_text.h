#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <string>

namespace posenc::parallel {

// Parts of GroupError's messages. Inline, because posenc::gloo is a library of its own.

/// `[caller] rank 1 of 4: `
inline std::string rank_prefix(const char* caller, int rank, int size) {
  return c10::str("[", caller, "] rank ", rank, " of ", size, ": ");
}

/// The message of an exception, without LibTorch's backtrace.
inline std::string text_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  return torch_error ? torch_error->what_without_backtrace() : error.what();
}

}  // namespace posenc::parallel
