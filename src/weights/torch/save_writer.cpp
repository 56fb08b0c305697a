#include "weights/torch/save_writer.h"

#include <ATen/ops/empty.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "posenc/weights/error.h"
#include "weights/common/file.h"
#include "weights/common/module_state.h"
#include "weights/common/tensor.h"
#include "weights/torch/zip/writer.h"

namespace posenc::io {
namespace {

// Which tensors share a record: those of one storage and dtype. A conj or neg view has values that
// are not in its storage, and an empty tensor has none: they get records of their own.
std::vector<std::vector<std::size_t>> records_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<std::size_t>> records;
  std::map<std::pair<const void*, at::ScalarType>, std::size_t> known;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& tensor = tensors[i];
    std::size_t record = records.size();
    if (!tensor.is_conj() && !tensor.is_neg() && tensor.numel() > 0) {
      record =
          known
              .emplace(std::pair(tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()),
                       record)
              .first->second;
    }
    if (record == records.size()) records.emplace_back();
    records[record].push_back(i);
  }
  return records;
}

int64_t end_of(const at::Tensor& tensor) {
  int64_t end = tensor.storage_offset() + 1;
  for (int64_t i = 0; i < tensor.dim(); ++i) end += (tensor.size(i) - 1) * tensor.stride(i);
  return end;
}

// The part of the storage that a record's views need, as one row of elements.
at::Tensor run_of(const std::vector<at::Tensor>& tensors, const std::vector<std::size_t>& members) {
  int64_t begin = tensors[members.front()].storage_offset(), end = begin;
  for (const std::size_t i : members) {
    begin = std::min(begin, tensors[i].storage_offset());
    end = std::max(end, end_of(tensors[i]));
  }
  const at::Tensor& first = tensors[members.front()];
  return at::empty({0}, first.options()).set_(first.storage(), begin, {end - begin}, {1});
}

// A record with a single view is written contiguous; one with several keeps its layout in memory.
std::vector<int64_t> strides_in_record(const at::Tensor& tensor, bool one_view) {
  if (!one_view) return tensor.strides().vec();
  const auto strides = c10::contiguous_strides(tensor.sizes());
  return {strides.begin(), strides.end()};
}

struct Layout {
  std::vector<PickledTensor> tensors;
  std::vector<at::Tensor> records;  // not yet made plain
};

Layout lay_out(const StateDict& dict) {
  Layout layout;
  std::vector<at::Tensor> tensors;
  for (const auto& item : dict) {
    if (!is_utf8(item.key())) {
      throw WeightsError(WeightsErrorCode::Unsupported, "must have a name in UTF-8")
          .in_tensor(item.key());
    }
    PickledTensor pickled;
    pickled.name = item.key();
    pickled.dtype = writable_dtype(item.key(), item.value());
    layout.tensors.push_back(std::move(pickled));
    tensors.push_back(item.value().detach());
  }
  for (const auto& members : records_of(tensors)) {
    const at::Tensor& first = tensors[members.front()];
    const bool one_view = std::all_of(members.begin(), members.end(), [&](std::size_t i) {
      return same_memory(first, tensors[i]);
    });
    const at::Tensor run = one_view ? first : run_of(tensors, members);
    for (const std::size_t i : members) {
      PickledTensor& pickled = layout.tensors[i];
      pickled.sizes = tensors[i].sizes().vec();
      pickled.strides = strides_in_record(tensors[i], one_view);
      pickled.offset = one_view ? 0 : tensors[i].storage_offset() - run.storage_offset();
      pickled.record = layout.records.size();
      pickled.record_elements = run.numel();
    }
    layout.records.push_back(run);
  }
  return layout;
}

}  // namespace

void save_torch(const std::string& path, const StateDict& tensors) {
  const Layout layout = lay_out(tensors);  // refuses what it can before a file exists
  AtomicFile file(path);
  ZipWriter zip(file, "archive");
  zip.add("data.pkl", pickle_tensors(layout.tensors));
  zip.add(".format_version", "1");
  zip.add(".storage_alignment", "64");
  zip.add("byteorder", "little");
  for (std::size_t i = 0; i < layout.records.size(); ++i) {
    const at::Tensor bytes = contiguous_on_cpu(layout.records[i]);
    zip.add("data/" + std::to_string(i), bytes.const_data_ptr(), bytes.nbytes());
  }
  zip.add("version", "3\n");
  zip.finish();
  file.commit();
}

}  // namespace posenc::io
