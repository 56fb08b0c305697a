#pragma once

#include <map>
#include <string>
#include <vector>

#include "posenc/io/error.h"

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
  std::vector<Fault> faults;

  bool is_error() const {
    return (!missing.empty() && !allow_missing) || (!unexpected.empty() && !allow_unexpected) ||
           !faults.empty();
  }
  /// One error that lists everything, with the nearest names; its code is that of the first kind.
  WeightsError error(const std::string& subject) const;
};

}  // namespace posenc::io
