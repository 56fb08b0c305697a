#pragma once

#include <string>
#include <vector>

#include "posenc/io/error.h"

namespace posenc::io {

/// Something that keeps a source from being loaded, besides missing and unexpected names.
struct Fault {
  WeightsErrorCode code;
  std::string text;    ///< a whole sentence, with the names
  std::string remedy;  ///< "" where there is none
};

/// Everything that is wrong between a module and a source of tensors.
struct Mismatch {
  std::vector<std::string> missing, unexpected;  ///< names, whether they are an error or not
  bool allow_missing = false, allow_unexpected = false;  ///< they are none
  std::vector<Fault> faults;

  bool is_error() const {
    return (!missing.empty() && !allow_missing) || (!unexpected.empty() && !allow_unexpected) ||
           !faults.empty();
  }
  /// One error that lists it all, with the nearest names; its code is the first kind's.
  WeightsError error(const std::string& subject) const;
};

}  // namespace posenc::io
