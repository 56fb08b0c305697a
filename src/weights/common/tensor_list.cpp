#include "weights/common/tensor_list.h"

#include <utility>

#include "base/text.h"

namespace posenc::io {
namespace {

std::string bracketed(const std::vector<int64_t>& numbers) {
  std::string out = "[";
  for (const int64_t number : numbers) {
    out += (out.size() > 1 ? ", " : "") + std::to_string(number);
  }
  return out + "]";
}

// left + right, or left * right, of non-negative numbers; -1 if it overflows or an operand is -1.
int64_t sum(int64_t left, int64_t right) {
  int64_t result = 0;
  return left < 0 || right < 0 || __builtin_add_overflow(left, right, &result) ? -1 : result;
}
int64_t product(int64_t left, int64_t right) {
  int64_t result = 0;
  return left < 0 || right < 0 || __builtin_mul_overflow(left, right, &result) ? -1 : result;
}

}  // namespace

std::size_t TensorList::add_storage(const ManifestStorage& storage) {
  budget_.spend(sizeof storage);
  manifest_.storages.push_back(storage);
  return manifest_.storages.size() - 1;
}

bool TensorList::add(ManifestTensor tensor) {
  budget_.spend(2 * (sizeof tensor + tensor.name.size()) + 16 * tensor.sizes.size());
  if (!is_utf8(tensor.name)) {
    throw WeightsError(WeightsErrorCode::Corrupt, "must have a name in UTF-8")
        .in_tensor(tensor.name);
  }
  try {
    check(tensor);
  } catch (const WeightsError& error) {
    throw error.in_tensor(tensor.name);
  }
  if (!names_.insert(tensor.name).second) return false;
  manifest_.tensors.push_back(std::move(tensor));
  return true;
}

void TensorList::check(const ManifestTensor& tensor) {
  if (tensor.sizes.size() > kMostDimensions || tensor.strides.size() != tensor.sizes.size()) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "must have at most 64 dimensions and a stride for each. Got sizes " +
                           std::to_string(tensor.sizes.size()) + ", strides " +
                           std::to_string(tensor.strides.size()));
  }
  // As in LibTorch, the product of the sizes must not overflow, even if another size is zero.
  int64_t elements = 1, largest = 1, last = tensor.offset;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const int64_t size = tensor.sizes[i], stride = tensor.strides[i];
    if (size < 0 || stride < 0) {
      throw WeightsError(WeightsErrorCode::Corrupt,
                         "must not have negative sizes or strides. Got sizes " +
                             bracketed(tensor.sizes) + ", strides " + bracketed(tensor.strides));
    }
    elements = product(elements, size);
    largest = product(largest, size == 0 ? 1 : size);
    if (size > 0) last = sum(last, product(size - 1, stride));
  }
  const int64_t item = item_size(tensor.dtype);
  const int64_t end = product(sum(last, 1), item);
  if (tensor.offset < 0 || product(largest, item) < 0 || last < 0) {
    throw WeightsError(WeightsErrorCode::OutOfBounds,
                       "has an offset or a shape beyond any storage. Got offset " +
                           std::to_string(tensor.offset) + ", sizes " + bracketed(tensor.sizes) +
                           ", strides " + bracketed(tensor.strides));
  }
  const uint64_t bytes = manifest_.storages[tensor.storage].bytes;
  if (elements > 0 && (end < 0 || static_cast<uint64_t>(end) > bytes)) {
    throw WeightsError(WeightsErrorCode::OutOfBounds,
                       "reaches outside its storage of " + std::to_string(bytes) +
                           " bytes. Got offset " + std::to_string(tensor.offset) + ", sizes " +
                           bracketed(tensor.sizes) + ", strides " + bracketed(tensor.strides));
  }
  const uint64_t values = static_cast<uint64_t>(elements) * static_cast<uint64_t>(item);
  if (values > values_left_) {
    throw WeightsError(
        WeightsErrorCode::LimitExceeded,
        "is expanded, or repeats others, far beyond the size of the file. Got sizes " +
            bracketed(tensor.sizes) + ", strides " + bracketed(tensor.strides));
  }
  values_left_ -= values;
}

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
