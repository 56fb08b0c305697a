#include "posenc/io/torchscript.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <exception>

#include "io/format.h"
#include "io/read/context.h"

namespace posenc {
namespace {

// The first line of LibTorch's message; the rest is its own source and a trace.
std::string first_line(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  const auto begin = text.find_first_not_of(" \n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

// Own parameters, own buffers, then children, as posenc::state_dict().
void collect(const torch::jit::Module& module, const std::string& prefix, TorchScriptFile& file) {
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    file.tensors.insert(prefix + item.name, item.value);
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) {
    file.tensors.insert(prefix + item.name, item.value);
    file.buffers.insert(prefix + item.name);
  }
  for (const auto& child : module.named_children()) {
    collect(child.value, prefix + child.name + ".", file);
  }
}

TorchScriptFile read(const std::string& path) {
  const auto module = torch::jit::load(path, at::kCPU);
  TorchScriptFile file;
  const auto name = module.type()->name();
  // The mangling is a part of its own (`__torch__.___torch_mangle_3.Linear`), never of the last.
  if (name) file.class_name = name->name();
  collect(module, "", file);
  // torch.jit.freeze takes `training` away with the weights; a module without weights keeps it.
  if (file.tensors.is_empty() && !module.hasattr("training")) {
    throw WeightsError(
        WeightsErrorCode::Corrupt,
        "is frozen (torch.jit.freeze): its weights have become constants of the code; save the "
        "module as it was before freezing");
  }
  return file;
}

}  // namespace

TorchScriptFile load_torchscript(const std::string& path) {
  return io::in_context("load_torchscript", path, [&] {
    if (io::detect_format(io::InputFile(path)) != io::Format::TorchScript) {
      throw WeightsError(WeightsErrorCode::Corrupt, "is a safetensors file, not TorchScript");
    }
    TorchScriptFile file;
    try {
      file = read(path);
    } catch (const WeightsError&) {
      throw;
    } catch (const std::exception& error) {
      throw WeightsError(WeightsErrorCode::Corrupt,
                         "torch::jit::load refuses it: " + first_line(error));
    }
    return file;
  });
}

}  // namespace posenc
