#include "io/safetensors/writer.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <optional>
#include <vector>

#include "io/base/atomic_file.h"
#include "io/base/writable.h"
#include "io/safetensors/layout.h"
#include "parallel/collectives.h"
#include "posenc/io/error.h"

// The formats are little-endian, and tensors are read and written as they are in memory.
static_assert(std::endian::native == std::endian::little);

namespace posenc::io {
namespace {

constexpr int64_t kBlockBytes = int64_t{64} << 20;

// Compares names, dtypes and shapes: if they differed, the processes' messages would not match.
std::string description(const std::vector<SafetensorsEntry>& entries, const GroupTensors& all) {
  std::string text;
  for (const auto& entry : entries) {
    const bool computed = all.computed.count(entry.name) != 0;
    text += entry.name + " " + dtype_name(entry.dtype) + " " +
            (computed ? std::string("computed") : c10::str(entry.sizes)) +
            (all.shards.count(entry.name) != 0 ? " by rows\n" : "\n");
  }
  return text;
}

std::vector<SafetensorsEntry> entries_of(const GroupTensors& all) {
  std::vector<SafetensorsEntry> entries;
  for (const auto& item : all.tensors) {
    const ManifestDtype dtype = writable_dtype(item.key(), item.value());
    const auto shard = all.shards.find(item.key());
    entries.push_back({item.key(), dtype,
                       shard == all.shards.end() ? item.value().sizes().vec()
                                                 : whole_sizes(item.value(), shard->second)});
  }
  return entries;
}

// Passes the bytes of all rows to `put` on rank 0, in order; other processes send theirs.
template <typename Put>
void gather_rows(const at::Tensor& tensor, const std::vector<int64_t>& rows, const RankGroup& group,
                 const char* caller, Put&& put) {
  auto sizes = tensor.sizes().vec();
  sizes[0] = 1;
  const int64_t row_bytes = c10::multiply_integers(sizes) * tensor.element_size();
  const int64_t block = std::max<int64_t>(1, kBlockBytes / std::max<int64_t>(1, row_bytes));
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    const bool is_own = static_cast<int>(rank) == group.rank();
    for (int64_t at = 0; at < rows[rank]; at += block) {
      const int64_t count = std::min(block, rows[rank] - at);
      if (is_own && rank == 0) {
        put(tensor.narrow(0, at, count));
      } else if (is_own) {
        const at::Tensor rows_here = tensor.detach().narrow(0, at, count);
        parallel::send(group, rows_here.resolve_conj().resolve_neg().contiguous(), 0, caller);
      } else if (group.rank() == 0) {
        sizes[0] = count;
        const at::Tensor received = at::empty(sizes, tensor.options());
        parallel::receive(group, received, static_cast<int>(rank), caller);
        put(received);
      }
    }
  }
}

}  // namespace

void write_safetensors(const std::string& path, const StateDict& tensors,
                       const std::map<std::string, std::string>& metadata) {
  write_safetensors(path, GroupTensors{tensors}, metadata, "");
}

std::vector<int64_t> rows_of_ranks(const at::Tensor& tensor, const ShardedName& shard,
                                   const RankGroup& group, const char* caller) {
  auto rows = parallel::all_gather_lengths(group, tensor.size(0), caller);
  const auto firsts = parallel::all_gather_lengths(group, shard.first, caller);
  int64_t next = 0;
  bool in_order = true;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    in_order = in_order && (rows[i] == 0 || firsts[i] == next);
    next += rows[i];
  }
  if (in_order && next == shard.rows) return rows;
  throw WeightsError(WeightsErrorCode::Module,
                     "must be split by rows over the processes of the group, in the order of their "
                     "ranks. Got " +
                         c10::str(rows) + " rows of " + std::to_string(shard.rows))
      .in_tensor(shard.name);
}

void write_safetensors(const std::string& path, const GroupTensors& all,
                       const std::map<std::string, std::string>& metadata, const char* caller) {
  const RankGroup& group = all.group;
  // Everything that can be refused is refused before a file exists.
  SafetensorsLayout layout;
  std::string text;
  parallel::all_or_none(
      group,
      [&] {
        const auto entries = entries_of(all);
        layout = lay_out_safetensors(entries, metadata);
        text = description(entries, all);
      },
      caller);
  parallel::agree_on(group, text, caller);
  std::map<std::string, std::vector<int64_t>> rows;
  for (const auto& [name, shard] : all.shards) {
    rows[name] = rows_of_ranks(all.tensors[name], shard, group, caller);
  }

  std::optional<AtomicFile> file;
  parallel::all_or_none(
      group,
      [&] {
        if (group.rank() != 0) return;
        file.emplace(path);
        file->write(layout.header.data(), layout.header.size());
      },
      caller);
  // Rank 0 goes on receiving after a failure to write: the others are sending to it.
  std::exception_ptr failure;
  const auto put = [&](const at::Tensor& tensor) {
    if (failure || !file) return;
    try {
      const at::Tensor bytes = contiguous_on_cpu(tensor);
      file->write(bytes.const_data_ptr(), bytes.nbytes());
    } catch (...) {
      failure = std::current_exception();
    }
  };
  for (const std::size_t i : layout.order) {
    const auto& item = all.tensors[i];
    const auto split = rows.find(item.key());
    if (split == rows.end()) {
      put(item.value());
    } else {
      gather_rows(item.value(), split->second, group, caller, put);
    }
  }
  parallel::all_or_none(
      group,
      [&] {
        if (failure) std::rethrow_exception(failure);
        if (file) file->commit();
      },
      caller);
}

}  // namespace posenc::io
