#pragma once

#include <c10/util/Exception.h>

#include <memory>
#include <string>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// The kind of a WeightsError.
enum class WeightsErrorCode {
  NotFound,        ///< there is no such file
  NotRegular,      ///< a directory, a FIFO or a device
  Io,              ///< an error of the operating system, which what() quotes
  UnknownFormat,   ///< not a known format
  Unsupported,     ///< known but not supported: compressed, big-endian, flatbuffer, a dtype ...
  WholeModule,     ///< a pickled Python object; what() names its class
  Truncated,       ///< the file ends early, or shrank while it was being read
  Corrupt,         ///< violates its format
  LimitExceeded,   ///< well formed, but beyond a limit of this reader
  OutOfBounds,     ///< a tensor reaches outside its storage, or a storage outside the file
  DuplicateKey,    ///< a name occurs twice
  Shard,           ///< an index does not match its files
  MissingKeys,     ///< names in the module that are not in the file
  UnexpectedKeys,  ///< names in the file that are not in the module
  ShapeMismatch,   ///< a tensor has another shape in the file
  DtypeMismatch,   ///< a tensor has another dtype in the file
  TieConflict,     ///< names that share memory in the module have different values in the file
  Module,  ///< the module cannot be loaded into: meta device, expanded, inference tensors ...
};

/// Returns the enumerator's name, such as `MissingKeys`.
const char* to_string(WeightsErrorCode code);

/// The complete lists of what a failed load has found; what() shows ten of each.
struct LoadDetails {
  std::vector<std::string> missing;     ///< names in the module that are not in the file
  std::vector<std::string> unexpected;  ///< names in the file that are not in the module
  /// Everything else: "'weight' must have shape (2, 3). Got (3, 2)".
  std::vector<std::string> mismatched;
  /// Names in the module that had been written when reading failed; empty if it was left as it was.
  std::vector<std::string> written;
};

/// Thrown by all functions that read or write weights. what() has the form
/// `[function] file: tensor 'name' rule; remedy`, as far as the parts are known, without a
/// backtrace. If a load finds several errors, what() continues with a list of them, details() has
/// all of them, and code() is the kind that WeightsErrorCode lists first.
class WeightsError : public c10::Error {
 public:
  /// `reason` begins with a verb whose subject is the file or the tensor.
  WeightsError(WeightsErrorCode code, std::string reason, std::string remedy = "");

  /// Returns the error with the name of the tensor, unless it has one.
  WeightsError in_tensor(const std::string& name) const;
  /// Returns the error with the path of the file, unless it has one.
  WeightsError in_file(const std::string& path) const;
  /// Returns the error with the name of the function, unless it has one.
  WeightsError in_function(const std::string& function) const;
  /// Returns the error with the lists of a failed load.
  WeightsError with_details(LoadDetails details) const;

  /// The kind of the error.
  WeightsErrorCode code() const noexcept { return code_; }
  /// The public function that was called.
  const std::string& function() const noexcept { return function_; }
  /// The path of the file; empty if unknown.
  const std::string& file() const noexcept { return file_; }
  /// The name of the tensor; empty if unknown.
  const std::string& tensor() const noexcept { return tensor_; }
  /// What is wrong: a line, and for a load that found several errors a list.
  const std::string& reason() const noexcept { return reason_; }
  /// What to do about it; may be empty.
  const std::string& remedy() const noexcept { return remedy_; }
  /// The lists of a failed load; empty for other errors.
  const LoadDetails& details() const noexcept { return *details_; }

 private:
  WeightsError(WeightsErrorCode code, std::string function, std::string file, std::string tensor,
               std::string reason, std::string remedy, std::shared_ptr<const LoadDetails> details);

  WeightsErrorCode code_;
  std::string function_, file_, tensor_, reason_, remedy_;
  std::shared_ptr<const LoadDetails> details_;  // shared by the copies of an error
};

}  // namespace posenc
