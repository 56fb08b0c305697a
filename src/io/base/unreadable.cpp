#include "io/base/unreadable.h"

namespace posenc::io {

std::string unreadable(const WeightsError& error) {
  return "a tensor that " + error.reason() +
         (error.remedy().empty() ? "" : " (" + error.remedy() + ")");
}

std::string remedy_for(EntryKind kind) {
  switch (kind) {
    case EntryKind::Module: return "save model.state_dict() in place of the model";
    case EntryKind::Container:
    case EntryKind::Object: return "save its tensors in a dict";
    case EntryKind::Other:
    case EntryKind::Unreadable: break;
  }
  return "";
}

void refuse_unreadable(const Manifest& manifest) {
  for (const auto& entry : manifest.opaque) {
    if (entry.kind != EntryKind::Unreadable) continue;
    throw WeightsError(WeightsErrorCode::Unsupported, "cannot be read: it is " + entry.text)
        .in_tensor(entry.name);
  }
}

}  // namespace posenc::io
