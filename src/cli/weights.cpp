#include "cli/weights.h"

#include <c10/core/ScalarType.h>
#include <fmt/ranges.h>

#include "cli/error.h"
#include "cli/script.h"
#include "io/format.h"
#include "io/read/context.h"
#include "posenc/io/safetensors.h"
#include "posenc/io/torchscript.h"

namespace posenc::cli {
namespace {

Weights read_all(const std::string& path) {
  const auto format =
      io::in_context("read", path, [&] { return io::detect_format(io::InputFile(path)); });
  if (format == io::Format::Safetensors)
    return Weights{path, "", load_safetensors(path).tensors, {}};
  auto file = load_torchscript(path);
  return Weights{path, std::move(file.class_name), std::move(file.tensors),
                 std::move(file.buffers)};
}

}  // namespace

Weights read_weights(const std::string& path, const std::string& prefix) {
  Weights all = read_all(path);
  if (all.tensors.is_empty()) {
    refuse("{} holds no parameters and no buffers{}", path,
           all.class_name.empty() ? "" : " (a frozen script has its weights in its code)");
  }
  if (prefix.empty()) return all;

  Weights part{path, "", StateDict(), {}};
  for (const auto& item : all.tensors) {
    if (item.key().rfind(prefix, 0) != 0 || item.key().size() == prefix.size()) continue;
    const auto name = item.key().substr(prefix.size());
    part.tensors.insert(name, item.value());
    if (all.buffers.count(item.key())) part.buffers.insert(name);
  }
  if (part.tensors.is_empty()) {
    refuse("{} has no name that begins with {} (a prefix is given with its dot); it holds {}", path,
           prefix, described(all.tensors));
  }
  if (!all.class_name.empty()) part.class_name = Script(path, prefix).class_name();
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
  constexpr std::size_t kMost = 8;
  if (tensors.is_empty()) return "nothing";
  std::vector<std::string> texts;
  for (const auto& item : tensors) {
    if (texts.size() == kMost) {
      texts.push_back(fmt::format("and {} more", tensors.size() - kMost));
      break;
    }
    texts.push_back(
        fmt::format("`{}` {} {}", item.key(), dtype_of(item.value()), shape_of(item.value())));
  }
  return listed(texts);
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("({})", fmt::join(tensor.sizes().vec(), ", "));
}

std::string dtype_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kDouble: return "float64";
    case at::kFloat: return "float32";
    case at::kHalf: return "float16";
    case at::kBFloat16: return "bfloat16";
    case at::kLong: return "int64";
    case at::kInt: return "int32";
    case at::kShort: return "int16";
    case at::kChar: return "int8";
    case at::kByte: return "uint8";
    case at::kBool: return "bool";
    default: return c10::toString(tensor.scalar_type());
  }
}

}  // namespace posenc::cli
