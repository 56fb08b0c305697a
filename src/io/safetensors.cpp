#include "posenc/io/safetensors.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "io/atomic_file.h"
#include "io/read/context.h"
#include "io/read/quote.h"
#include "io/safetensors_header.h"

// The format is little-endian, and tensors are read and written as they lie in memory.
static_assert(std::endian::native == std::endian::little);

namespace posenc {
namespace {

using WeightsError;
using io::in_quotes;

constexpr std::array<std::pair<std::string_view, at::ScalarType>, 19> kScalarTypes = {{
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
    {"C64", at::kComplexFloat},
    {"F32", at::kFloat},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E8M0", at::kFloat8_e8m0fnu},
    {"F8_E4M3FNUZ", at::kFloat8_e4m3fnuz},
    {"F8_E5M2FNUZ", at::kFloat8_e5m2fnuz},
}};

at::ScalarType scalar_type(std::string_view dtype) {
  const auto* found = std::find_if(kScalarTypes.begin(), kScalarTypes.end(),
                                   [&](const auto& row) { return row.first == dtype; });
  if (found == kScalarTypes.end())
    throw WeightsError(WeightsErrorCode::Corrupt, "dtype " + in_quotes(dtype) + " is unknown");
  return found->second;
}

// A C++ bool with another bit pattern is undefined behaviour, so such bytes stop at the border.
void check_bools(const at::Tensor& tensor, const std::string& name) {
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  const auto* end = bytes + tensor.numel();
  const auto* bad = std::find_if(bytes, end, [](unsigned char byte) { return byte > 1; });
  if (bad != end) {
    throw WeightsError(WeightsErrorCode::Corrupt,
                       "tensor " + in_quotes(name) + ": BOOL bytes must be 0 or 1. Got " +
                           std::to_string(*bad) + " at byte " + std::to_string(bad - bytes));
  }
}

at::Tensor read_tensor(const io::InputFile& file, const io::SafetensorsEntry& entry,
                       uint64_t data_offset) {
  const at::ScalarType type = scalar_type(entry.dtype.name);
  auto tensor = at::empty(entry.shape, at::TensorOptions().dtype(type).device(at::kCPU));
  file.read(data_offset + entry.begin, tensor.mutable_data_ptr(), entry.end - entry.begin);
  if (type == at::kBool) check_bools(tensor, entry.name);
  return tensor;
}

// The entry without its place in the data part.
io::SafetensorsEntry describe(const std::string& name, const at::Tensor& tensor) {
  if (name == "__metadata__")
    throw WeightsError(WeightsErrorCode::Corrupt, "name '__metadata__' is the format's own");
  if (!tensor.defined())
    throw WeightsError(WeightsErrorCode::Corrupt, "tensor " + in_quotes(name) + " is undefined");
  if (tensor.layout() != at::kStrided || tensor.is_quantized() || tensor.is_nested() ||
      tensor.is_meta()) {
    throw WeightsError(
        WeightsErrorCode::Corrupt,
        "tensor " + in_quotes(name) +
            " must be dense and hold data. Got a sparse, quantised, nested or meta tensor");
  }
  const auto* found = std::find_if(kScalarTypes.begin(), kScalarTypes.end(), [&](const auto& row) {
    return row.second == tensor.scalar_type();
  });
  if (found == kScalarTypes.end()) {
    throw WeightsError(WeightsErrorCode::Corrupt, "tensor " + in_quotes(name) +
                                                      ": safetensors has no dtype " +
                                                      c10::toString(tensor.scalar_type()));
  }
  io::SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = io::safetensors_dtype(found->first);
  entry.shape = tensor.sizes().vec();
  entry.end = static_cast<uint64_t>(tensor.numel()) * entry.dtype.bytes;
  return entry;
}

}  // namespace

SafetensorsFile load_safetensors(const std::string& path) {
  return io::in_context("load_safetensors", path, [&] {
    const io::InputFile file(path);
    auto header = io::read_safetensors_header(file);
    SafetensorsFile result;
    for (const auto& entry : header.entries) {
      result.tensors.insert(entry.name, read_tensor(file, entry, header.data_offset));
    }
    result.metadata = std::move(header.metadata);
    return result;
  });
}

void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::in_context("save_safetensors", path, [&] {
    // All that can be refused is refused before a file exists.
    std::vector<io::SafetensorsEntry> entries;
    for (const auto& item : tensors) entries.push_back(describe(item.key(), item.value()));

    // Data by falling size of the elements, so that every tensor is aligned; the header keeps the
    // caller's order, which readers are free to use.
    std::vector<std::size_t> order(entries.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return entries[a].dtype.bytes > entries[b].dtype.bytes;
    });
    uint64_t offset = 0;
    for (const std::size_t i : order) {
      const uint64_t size = entries[i].end;
      entries[i].begin = offset;
      entries[i].end = offset += size;
    }
    const std::string header = io::format_safetensors_header(entries, metadata);

    io::AtomicFile file(path);
    file.write(header.data(), header.size());
    for (const std::size_t i : order) {
      const auto bytes =
          tensors[i].value().detach().cpu().resolve_conj().resolve_neg().contiguous();
      file.write(bytes.const_data_ptr(), entries[i].end - entries[i].begin);
    }
    file.commit();
  });
}

}  // namespace posenc
