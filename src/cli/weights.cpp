#include "cli/weights.h"

#include <fmt/ranges.h>

#include <utility>

#include "cli/error.h"
#include "io/dtype.h"
#include "io/load/load_all.h"
#include "posenc/io/safetensors.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kMostDescribed = 8;

// "a, b, and 3 more".
std::string shortened(std::vector<std::string> texts) {
  if (texts.empty()) return "nothing";
  const std::size_t count = texts.size();
  if (count > kMostDescribed) {
    texts.resize(kMostDescribed);
    texts.push_back(fmt::format("and {} more", count - kMostDescribed));
  }
  return listed(texts);
}

// A script's buffers are saved whether they are persistent or not, and nothing tells which are.
bool may_be_scratch(const Manifest& manifest, const ManifestTensor& tensor) {
  return manifest.format == WeightsFormat::TorchScript && tensor.role == TensorRole::Buffer;
}

}  // namespace

Weights read_weights(const std::string& path, const std::string& prefix) {
  auto weights = io::open_weights(path);
  Manifest& manifest = weights.manifest;
  if (manifest.tensors.empty()) refuse("{} holds no parameters and no buffers", path);
  std::vector<std::string> names;
  for (const auto& tensor : manifest.tensors) names.push_back(tensor.name);
  std::erase_if(manifest.tensors, [&](const auto& tensor) {
    return !tensor.name.starts_with(prefix) || tensor.name.size() == prefix.size();
  });
  if (manifest.tensors.empty()) {
    refuse("{} has no name that begins with {} (a prefix is given with its dot); it holds {}", path,
           prefix, shortened(names));
  }
  Weights part{path, manifest.format, prefix.empty() ? manifest.class_name : "", StateDict(), {}};
  for (auto& tensor : manifest.tensors) {
    tensor.name = tensor.name.substr(prefix.size());
    if (may_be_scratch(manifest, tensor)) part.optional.insert(tensor.name);
  }
  part.tensors = io::all_tensors(weights);
  return part;
}

StateDict read_tensors(const std::string& path, const std::string& name) {
  StateDict tensors = load_safetensors(path).tensors;
  if (!tensors.contains(name)) {
    refuse("{} must have a tensor `{}`; it holds {}", path, name, described(tensors));
  }
  return tensors;
}

std::string described(const StateDict& tensors) {
  std::vector<std::string> texts;
  for (const auto& item : tensors) {
    texts.push_back(
        fmt::format("`{}` {} {}", item.key(), dtype_of(item.value()), shape_of(item.value())));
  }
  return shortened(std::move(texts));
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes().vec(), ", "));
}

std::string dtype_of(const at::Tensor& tensor) { return io::type_name(tensor.scalar_type()); }

}  // namespace posenc::cli
