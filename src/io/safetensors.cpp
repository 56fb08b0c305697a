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
#include "io/read/safetensors.h"
#include "io/write/safetensors_layout.h"

// The format is little-endian, and tensors are read and written as they lie in memory.
static_assert(std::endian::native == std::endian::little);

namespace posenc {
namespace {

using io::in_quotes;

constexpr std::array<std::pair<Dtype, at::ScalarType>, 19> kScalarTypes = {{
    {Dtype::Float64, at::kDouble},
    {Dtype::Int64, at::kLong},
    {Dtype::UInt64, at::kUInt64},
    {Dtype::Complex64, at::kComplexFloat},
    {Dtype::Float32, at::kFloat},
    {Dtype::Int32, at::kInt},
    {Dtype::UInt32, at::kUInt32},
    {Dtype::Float16, at::kHalf},
    {Dtype::BFloat16, at::kBFloat16},
    {Dtype::Int16, at::kShort},
    {Dtype::UInt16, at::kUInt16},
    {Dtype::Int8, at::kChar},
    {Dtype::UInt8, at::kByte},
    {Dtype::Bool, at::kBool},
    {Dtype::Float8_e4m3fn, at::kFloat8_e4m3fn},
    {Dtype::Float8_e5m2, at::kFloat8_e5m2},
    {Dtype::Float8_e8m0fnu, at::kFloat8_e8m0fnu},
    {Dtype::Float8_e4m3fnuz, at::kFloat8_e4m3fnuz},
    {Dtype::Float8_e5m2fnuz, at::kFloat8_e5m2fnuz},
}};

at::ScalarType scalar_type(Dtype dtype) {
  return std::find_if(kScalarTypes.begin(), kScalarTypes.end(),
                      [&](const auto& row) { return row.first == dtype; })
      ->second;
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

at::Tensor read_tensor(const io::InputFile& file, const ManifestTensor& entry,
                       const ManifestStorage& storage) {
  const at::ScalarType type = scalar_type(entry.dtype);
  auto tensor = at::empty(entry.sizes, at::TensorOptions().dtype(type).device(at::kCPU));
  file.read(storage.offset, tensor.mutable_data_ptr(), storage.bytes);
  if (type == at::kBool) check_bools(tensor, entry.name);
  return tensor;
}

// The entry without its place in the data part.
io::SafetensorsEntry describe(const std::string& name, const at::Tensor& tensor) {
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
  return {name, found->first, tensor.sizes().vec()};
}

}  // namespace

SafetensorsFile load_safetensors(const std::string& path) {
  return io::in_context("load_safetensors", path, [&] {
    const io::InputFile file(path);
    auto manifest = io::read_safetensors(file);
    SafetensorsFile result;
    for (const auto& entry : manifest.tensors) {
      result.tensors.insert(entry.name, read_tensor(file, entry, manifest.storages[entry.storage]));
    }
    result.metadata = std::move(manifest.metadata);
    return result;
  });
}

void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata) {
  io::in_context("save_safetensors", path, [&] {
    // All that can be refused is refused before a file exists.
    std::vector<io::SafetensorsEntry> entries;
    for (const auto& item : tensors) entries.push_back(describe(item.key(), item.value()));
    const auto layout = io::lay_out_safetensors(entries, metadata);

    io::AtomicFile file(path);
    file.write(layout.header.data(), layout.header.size());
    for (const std::size_t i : layout.order) {
      const auto bytes =
          tensors[i].value().detach().cpu().resolve_conj().resolve_neg().contiguous();
      file.write(bytes.const_data_ptr(), bytes.nbytes());
    }
    file.commit();
  });
}

}  // namespace posenc
