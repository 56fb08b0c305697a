#pragma once

#include <stdexcept>
#include <string>

namespace posenc {

/// What is wrong, for programs; what() says it for people.
enum class WeightsErrorCode {
  NotFound,
  NotRegular,      ///< a directory, a FIFO, a device
  Io,              ///< the system's reason is in what()
  UnknownFormat,   ///< nothing that is known
  Unsupported,     ///< known and refused: compressed, big-endian, flatbuffer, frozen, a dtype ...
  WholeModule,     ///< a pickled Python object, whose class what() names
  Truncated,       ///< the file ends early, or has become shorter while it was read
  Corrupt,         ///< breaks a rule of its format
  LimitExceeded,   ///< well formed, and beyond a bound of this reader
  OutOfBounds,     ///< a tensor that reaches outside its storage, or a storage outside the file
  DuplicateKey,    ///< one name twice
  Shard,           ///< an index that does not fit its files
  MissingKeys,     ///< in the module and not in the file
  UnexpectedKeys,  ///< in the file and not in the module
  ShapeMismatch,
  DtypeMismatch,
  TieConflict,  ///< names that are one tensor in the module and differ in the file
  Module,       ///< the module cannot take weights: meta device, expanded or inference tensors
};

/// `MissingKeys` and so on.
const char* name(WeightsErrorCode code);

/// The error that everything which reads or writes weights throws. what() is
/// `[function] file: tensor 'name' rule; remedy`, as far as each is known. Where a load finds
/// several things wrong, what() lists them all, and code() is the first kind in the order above.
class WeightsError : public std::runtime_error {
 public:
  /// `reason` begins with a verb that has the file, or the tensor, as its subject.
  WeightsError(WeightsErrorCode code, std::string reason, std::string remedy = "");

  /// The same error with what an inner function could not know; what is known already is kept.
  WeightsError in_tensor(const std::string& name) const;
  WeightsError in_file(const std::string& path) const;
  WeightsError in_function(const std::string& function) const;

  WeightsErrorCode code() const noexcept { return code_; }
  const std::string& function() const noexcept { return function_; }
  const std::string& file() const noexcept { return file_; }
  const std::string& tensor() const noexcept { return tensor_; }
  const std::string& reason() const noexcept { return reason_; }
  const std::string& remedy() const noexcept { return remedy_; }

 private:
  WeightsError(WeightsErrorCode code, std::string function, std::string file, std::string tensor,
               std::string reason, std::string remedy);

  WeightsErrorCode code_;
  std::string function_, file_, tensor_, reason_, remedy_;
};

}  // namespace posenc
