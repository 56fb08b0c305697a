#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "posenc/base/error.h"
#include "posenc/tokenizers/c_api.h"
#include "posenc/tokenizers/error.h"

namespace posenc::text {

/// What posenc_last_error() returns in this thread.
std::string& last_error();

/// Keeps the message of a failure, and returns its status.
posenc_status failed(posenc_status status, const char* message) noexcept;

inline posenc_status status_of(TokenizerErrorCode code) {
  switch (code) {
    case TokenizerErrorCode::File: return POSENC_FILE;
    case TokenizerErrorCode::Format: return POSENC_FORMAT;
    case TokenizerErrorCode::Limit: return POSENC_LIMIT;
  }
  return POSENC_INTERNAL;
}

/// Runs the body of a function of the C interface: every exception becomes a status.
template <typename Work>
posenc_status guarded(Work&& work) noexcept {
  try {
    work();
    return POSENC_OK;
  } catch (const ArgumentError& error) {
    return failed(POSENC_ARGUMENT, error.what());
  } catch (const TokenizerError& error) {
    return failed(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(POSENC_MEMORY, "out of memory");
  } catch (const std::length_error&) {  // of a container that no memory could hold
    return failed(POSENC_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(POSENC_INTERNAL, error.what());
  } catch (...) {
    return failed(POSENC_INTERNAL, "an exception of an unknown type");
  }
}

}  // namespace posenc::text
