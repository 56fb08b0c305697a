#include "io/load/file_source.h"

#include <ATen/ops/empty.h>

#include "io/base/dtype.h"
#include "io/base/unreadable.h"
#include "io/load/copy_view.h"

namespace posenc::io {

FileSource::FileSource(const std::string& path) : weights_(path) {
  for (const auto& tensor : manifest().tensors) {
    entries_.push_back({tensor.name, scalar_type(tensor.dtype), tensor.sizes});
  }
  // Objects are not weights, and matter only if the module has a tensor of that name.
  for (const auto& [name, text, kind] : manifest().opaque) {
    entries_.push_back({.name = name,
                        .fault = "must be a dense tensor. Got " + text,
                        .is_tensor = false,
                        .is_module = kind == EntryKind::Module,
                        .remedy = remedy_for(kind)});
  }
}

FileView FileSource::view(std::size_t index) const {
  return weights_.view(manifest().tensors[index]);
}

template <typename Work>
auto FileSource::reading(std::size_t index, Work&& work) const {
  try {
    return work();
  } catch (const WeightsError& error) {
    const auto& tensor = manifest().tensors[index];
    throw error.in_tensor(tensor.name).in_file(weights_.path_of(tensor));
  }
}

at::Tensor FileSource::tensor(std::size_t index) const {
  return reading(index, [&] { return in_memory(view(index)); });
}

at::Tensor FileSource::head(std::size_t index, int64_t axis, int64_t count) const {
  return reading(index, [&] {
    return in_memory(view(index).narrow(static_cast<std::size_t>(axis), 0, count));
  });
}

at::Tensor FileSource::in_memory(const FileView& view) {
  auto result = at::empty(view.sizes, at::TensorOptions(scalar_type(view.dtype)));
  copy_view(view, result);
  return result;
}

void FileSource::copy_to(std::size_t index, const at::Tensor& target) const {
  reading(index, [&] { copy_view(view(index), target); });
}

bool FileSource::equal(std::size_t a, std::size_t b) const {
  return reading(a, [&] { return equal_views(view(a), view(b)); });
}

void FileSource::check_values(std::size_t index) const {
  reading(index, [&] { check_bools(view(index)); });
}

}  // namespace posenc::io
