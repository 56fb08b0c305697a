#include "cli/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cli/error.h"
#include "io/base/tensor.h"
#include "io/load/load_all.h"
#include "posenc/io/safetensors.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kMostDescribed = 8;

std::string shortened(const std::vector<std::string>& texts) {
  return texts.empty() ? "nothing" : listed(texts, kMostDescribed);
}

// A script saves all its buffers, persistent or not, and does not record which are.
bool may_be_non_persistent(const Manifest& manifest, const ManifestTensor& tensor) {
  return manifest.format == WeightsFormat::TorchScript && tensor.role == TensorRole::Buffer;
}

}  // namespace

Weights read_weights(const std::string& path, const std::string& prefix) {
  io::OpenWeights weights(path);
  Manifest& manifest = weights.manifest;
  if (manifest.tensors.empty()) fail("{} contains no parameters or buffers", path);
  std::vector<std::string> names;
  for (const auto& tensor : manifest.tensors) names.push_back(shown(tensor.name));
  std::erase_if(manifest.tensors, [&](const auto& tensor) {
    return !tensor.name.starts_with(prefix) || tensor.name.size() == prefix.size();
  });
  if (manifest.tensors.empty()) {
    fail("{} has no name that begins with {}; it contains {}", path, prefix, shortened(names));
  }
  const auto& first = manifest.tensors.front().name;
  const auto begins_with_dot = [&](const auto& tensor) {
    return tensor.name[prefix.size()] == '.';
  };
  if (!prefix.empty() &&
      std::all_of(manifest.tensors.begin(), manifest.tensors.end(), begins_with_dot)) {
    fail("--prefix {0}: must include the dot, as in --prefix {0}.; {1} contains {2}", prefix, path,
         shown(first));
  }
  Weights part{path, manifest.format, prefix.empty() ? manifest.class_name : "", StateDict(), {},
               {}};
  const auto own = [&](const std::string& name, const std::string& text) {
    const auto start = [&](const std::string& whole) {
      return whole.starts_with(prefix) ? prefix.size() : 0;
    };
    if (name.starts_with(prefix)) {
      part.values.emplace(name.substr(prefix.size()), text.substr(start(text)));
    }
  };
  for (const ManifestEntry& value : manifest.values) own(value.name, value.text);
  for (const auto& [name, text] : manifest.metadata) own(name, text);  // values may be names
  for (auto& tensor : manifest.tensors) {
    tensor.name = tensor.name.substr(prefix.size());
    if (may_be_non_persistent(manifest, tensor)) part.optional.insert(tensor.name);
  }
  part.tensors = io::all_tensors(weights);
  return part;
}

StateDict read_tensors(const std::string& path, const std::vector<std::string>& names) {
  StateDict tensors = load_safetensors(path).tensors;
  for (const auto& name : names) {
    if (!tensors.contains(name)) {
      fail("{} must have a tensor `{}`; it contains {}", path, name, described(tensors));
    }
  }
  return tensors;
}

void refuse_unknown(const StateDict& tensors, const std::string& path, const std::string& taker,
                    const std::vector<std::string>& known) {
  const std::string& main = known.front();
  for (const auto& item : tensors) {
    const std::string& name = item.key();
    if (std::count(known.begin(), known.end(), name) != 0) continue;
    const bool is_part = !tensors.contains(main) && main.find(name) != std::string::npos;  // `ids`
    fail("{}: {} takes no `{}`{}", path, taker, shown(name),
         suggestion(is_part ? main : name, known));
  }
}

std::string described(const StateDict& tensors) {
  std::vector<std::string> texts;
  for (const auto& item : tensors) {
    texts.push_back(fmt::format("`{}` {} {}", shown(item.key()), dtype_text(item.value()),
                                shape_of(item.value())));
  }
  return shortened(texts);
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes().vec(), ", "));
}

std::string dtype_text(const at::Tensor& tensor) { return io::type_name(tensor.scalar_type()); }

}  // namespace posenc::cli
