#include "io/base/unreadable.h"

namespace posenc::io {

std::string unreadable(const WeightsError& error) {
  return "a tensor that " + error.reason() +
         (error.remedy().empty() ? "" : " (" + error.remedy() + ")");
}

void refuse_unreadable(const Manifest& manifest) {
  for (const auto& entry : manifest.opaque) {
    if (entry.kind != EntryKind::Unreadable) continue;
    throw WeightsError(WeightsErrorCode::Unsupported, "cannot be read: it is " + entry.text)
        .in_tensor(entry.name);
  }
}

}  // namespace posenc::io
