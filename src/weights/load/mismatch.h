#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "posenc/weights/error.h"

namespace posenc::io {

/// A reason why a source cannot be loaded, other than missing and unexpected names.
struct Fault {
  WeightsErrorCode code;
  std::string text;    ///< a complete sentence, including the names
  std::string remedy;  ///< "" if there is none
};

/// All differences between a module and a source of tensors.
struct Mismatch {
  std::vector<std::string> missing, unexpected;  ///< names, whether they are errors or not
  /// The names in the file from which a key_map would make a missing tensor.
  std::map<std::string, std::vector<std::string>> names_in_file;
  bool allow_missing = false, allow_unexpected = false;  ///< then they are not errors
  bool is_of_folder =
      false;  ///< the module has just been made of a configuration, for a user who knows none
  std::string prefix;        ///< that of the options, with which the unexpected names begin
  bool is_mapped = false;    ///< whether the options have a key_map
  std::size_t expected = 0;  ///< number of names in the module
  std::size_t given = 0;     ///< number of names that the options select
  std::vector<Fault> faults;
  /// Objects that may hold the missing tensors: faults if nothing else explains what is missing.
  std::vector<Fault> objects;

  bool is_error() const {
    return has_missing() || has_unexpected() || selects_nothing() || !faults.empty();
  }
  /// One error that begins with the cause, if that is clear, and lists ten of each kind; details()
  /// has all. Its code is that of the first kind.
  WeightsError error(const std::string& subject) const;

 private:
  /// What explains the differences and what to do; empty if there is no such thing.
  struct Cause {
    std::string text, remedy;
  };

  bool has_missing() const { return !missing.empty() && !allow_missing; }
  bool has_unexpected() const { return !unexpected.empty() && !allow_unexpected; }
  bool selects_nothing() const { return !prefix.empty() && given == 0 && expected > 0; }
  Cause cause() const;
  const Fault* object_with_missing() const;
  Cause cause_of_missing() const;
  Cause missing_prefix() const;
  std::vector<std::string> missing_lines(const std::vector<std::string>& candidates) const;
  std::string fault_lines() const;
};

/// A line for each of the first ten texts, indented, each with a line feed before it, and one that
/// counts the others.
std::string lines_of(const std::vector<std::string>& texts, std::size_t indent);

/// `(2, 3)`, for messages.
inline std::string shape_text(c10::ArrayRef<int64_t> sizes) {
  std::string text = "(";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

}  // namespace posenc::io
