#include "weights/load/source.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "core/torch_internals/shortcut.h"
#include "weights/common/tensor.h"
#include "weights/common/tensor_list.h"
#include "weights/load/key_map.h"

namespace posenc::io {
namespace {

constexpr int64_t kBlock = int64_t{8} << 20;  // bytes that a thread reads per call

bool same_layout(const FileView& view, const at::Tensor& target) {
  if (view.is_contiguous() && target.is_contiguous()) return true;
  return target.strides() == at::IntArrayRef(view.strides) && target.is_non_overlapping_and_dense();
}

void copy_windows(const FileView& view, const at::Tensor& target) {
  read_windows(view, [&](const Window& window) {
    const auto& [file, begin, dtype, sizes, strides, conj, negative] = window.part;
    at::Tensor into = target;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == view.sizes[i]) continue;
      into = into.narrow(static_cast<int64_t>(i), window.starts[i], sizes[i]);
    }
    into.copy_(at::from_blob(window.data, sizes, strides, at::TensorOptions(scalar_type(dtype))));
  });
}

}  // namespace

void copy_view(const FileView& view, const at::Tensor& target) {
  if (view.numel() == 0) return;
  const bool straight = target.is_cpu() && target.scalar_type() == scalar_type(view.dtype) &&
                        !view.conj && !view.negative && !target.is_conj() && !target.is_neg() &&
                        same_layout(view, target);
  if (!straight) return copy_windows(view, target);
  torch_internals::note_write(target);
  // In parallel, because copying is slow if the file's bytes are not aligned like the memory.
  auto* bytes = static_cast<char*>(target.mutable_data_ptr());
  at::parallel_for(0, static_cast<int64_t>(target.nbytes()), kBlock,
                   [&](int64_t begin, int64_t end) {
                     view.file->read(view.begin + static_cast<uint64_t>(begin), bytes + begin,
                                     static_cast<std::size_t>(end - begin));
                   });
}

void refuse_unreadable_entry(const TensorSource::Entry& entry) {
  if (entry.fault.empty()) return;
  throw WeightsError(WeightsErrorCode::Unsupported, entry.fault).in_tensor(entry.name);
}

FileSource::FileSource(const std::string& path) : weights_(path) {
  for (const auto& tensor : manifest().tensors) {
    entries_.push_back({tensor.name, scalar_type(tensor.dtype), tensor.sizes});
  }
  // Objects are not weights, and matter only if the module has a tensor of that name.
  for (const auto& [name, text, kind] : manifest().opaque) {
    entries_.push_back({.name = name,
                        .fault = "must be a dense tensor. Got " + text,
                        .is_tensor = false,
                        .is_unreadable = kind == EntryKind::Unreadable,
                        .is_module = kind == EntryKind::Module,
                        .remedy = remedy_for(kind)});
  }
}

FileView FileSource::view(std::size_t index) const {
  refuse_unreadable_entry(entries_[index]);
  return weights_.view(manifest().tensors[index]);
}

template <typename Work>
auto FileSource::reading(std::size_t index, Work&& work) const {
  try {
    return work();
  } catch (const WeightsError& error) {
    if (!entries_[index].fault.empty()) throw;
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

namespace {

using torch_internals::extent_of;
using torch_internals::MemoryExtent;

// The memory of tensors, by addresses: another storage may have been made over it.
class Memory {
 public:
  explicit Memory(const StateDict& tensors) {
    for (const auto& item : tensors) {
      if (is_dense_with_data(item.value())) extents_.push_back(extent_of(item.value()));
    }
    std::sort(extents_.begin(), extents_.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < extents_.size(); ++i) {  // reaching as far as any before
      extents_[i].end = std::max(extents_[i].end, extents_[i - 1].end);
    }
  }
  bool overlaps(const at::Tensor& tensor) const {
    const MemoryExtent extent = extent_of(tensor);
    const auto after = std::lower_bound(extents_.begin(), extents_.end(), extent.end,
                                        [](const auto& a, uintptr_t end) { return a.begin < end; });
    return after != extents_.begin() && std::prev(after)->end > extent.begin;
  }

 private:
  std::vector<MemoryExtent> extents_;
};

}  // namespace

MemorySource::MemorySource(const StateDict& tensors, const torch::nn::Module& module) {
  const Memory memory(state_dict(module));
  for (const auto& item : tensors) {
    const at::Tensor& tensor = item.value();
    Entry entry;
    entry.name = item.key();
    if (!tensor.defined()) {
      entry.fault = "must be a defined tensor";
    } else if (entry.fault = refusal_of(tensor); entry.fault.empty()) {
      entry.dtype = tensor.scalar_type();
      entry.sizes = tensor.sizes().vec();
    }
    const bool is_own = entry.fault.empty() && memory.overlaps(tensor);
    tensors_.push_back(is_own ? tensor.detach().clone() : tensor);
    entries_.push_back(std::move(entry));
  }
}

at::Tensor MemorySource::tensor(std::size_t index) const { return tensors_[index].detach(); }

at::Tensor MemorySource::head(std::size_t index, int64_t axis, int64_t count) const {
  return tensor(index).narrow(axis, 0, count);
}

void MemorySource::copy_to(std::size_t index, const at::Tensor& target) const {
  target.copy_(tensors_[index]);
}

bool MemorySource::equal(std::size_t a, std::size_t b) const {
  return same_memory(tensors_[a], tensors_[b]) || same_bytes(tensors_[a], tensors_[b]);
}

void SelectedSource::select(std::size_t index, Entry entry) {
  entries_.push_back(std::move(entry));
  index_.push_back(index);
}

void SelectedSource::leave_out(std::size_t index) {
  if (source_.entries()[index].is_tensor) left_out_.push_back(source_.name_in_file(index));
}

std::string SelectedSource::name_in_file(std::size_t index) const {
  return index < selected() ? source_.name_in_file(index_[index]) : entries_[index].name;
}

std::vector<std::string> SelectedSource::left_out() const {
  std::vector<std::string> all = source_.left_out();
  all.insert(all.end(), left_out_.begin(), left_out_.end());
  return all;
}

at::Tensor SelectedSource::tensor(std::size_t index) const { return source_.tensor(index_[index]); }

at::Tensor SelectedSource::head(std::size_t index, int64_t axis, int64_t count) const {
  return source_.head(index_[index], axis, count);
}

void SelectedSource::copy_to(std::size_t index, const at::Tensor& target) const {
  source_.copy_to(index_[index], target);
}

bool SelectedSource::equal(std::size_t a, std::size_t b) const {
  return source_.equal(index_[a], index_[b]);
}

void SelectedSource::check_values(std::size_t index) const { source_.check_values(index_[index]); }

RenamedSource::RenamedSource(const TensorSource& source, const std::string& prefix,
                             const KeyMap& map)
    : SelectedSource(source) {
  std::vector<bool> is_used(map.size());
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    Entry entry = source.entries()[i];
    if (entry.name.rfind(prefix, 0) == 0) {
      const std::string rest = entry.name.substr(prefix.size());
      if (const auto found = find_rule(rest, map)) {
        is_used[found->rule] = true;
        const std::string name = fill_pattern(map[found->rule].name, found->runs);
        if (name.empty()) {
          leave_out(i);
          continue;
        }
        entry.name = prefix + name;
      }
    }
    select(i, std::move(entry));
  }
  for (std::size_t rule = 0; rule < map.size(); ++rule)
    if (!is_used[rule]) unused_patterns_.push_back(map[rule].sources.items.front().pattern());
}

void check_renames(const char* caller, const KeyMap& map) {
  check_key_map(map);
  for (const auto& rule : map) {
    const auto& sources = rule.sources.items;
    TORCH_CHECK_VALUE(
        sources.size() == 1 && sources.front().change() == KeySource::Change::None, "[", caller,
        "] a rule of key_map must rename one tensor, to its name in transformers, or drop it. Got "
        "one that packs or changes ",
        in_quotes(sources.front().pattern()));
  }
}

}  // namespace posenc::io
