#include "cli/weights.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "cli/error.h"
#include "posenc/weights/safetensors.h"
#include "weights/common/tensor.h"
#include "weights/load/load_all.h"

namespace posenc::cli {
namespace {

constexpr std::size_t kMostDescribed = 8;

std::string shortened(const std::vector<std::string>& texts) {
  return texts.empty() ? "nothing" : listed(texts, kMostDescribed);
}

}  // namespace

StateDict read_weights(const std::string& path) {
  StateDict tensors = io::all_tensors(io::OpenWeights(path));
  if (tensors.is_empty()) fail("{} contains no parameters or buffers", path);
  return tensors;
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

void note_unexpected(const char* command, const LoadReport& report) {
  if (report.unexpected.empty()) return;
  std::vector<std::string> names;
  for (const std::string& name : report.unexpected) names.push_back(shown(name));
  print_error("posenc {}: skipped tensors that the model does not have: {}\n", command,
              shortened(names));
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes().vec(), ", "));
}

std::string dtype_text(const at::Tensor& tensor) { return io::type_name(tensor.scalar_type()); }

}  // namespace posenc::cli
