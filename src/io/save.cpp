#include "posenc/io/save.h"

#include <torch/nn/module.h>

#include "io/base/file.h"
#include "io/base/module_state.h"
#include "io/convert.h"
#include "io/safetensors/writer.h"
#include "io/torch/save_writer.h"
#include "parallel/collectives.h"

namespace posenc {
namespace {

SaveFormat format_of(const std::string& path, SaveFormat format) {
  if (format != SaveFormat::ByExtension) return format;
  return io::is_torch_save(path) ? SaveFormat::TorchSave : SaveFormat::Safetensors;
}

void save(const std::string& path, const io::GroupTensors& all, const SaveOptions& options,
          const char* caller) {
  if (format_of(path, options.format()) == SaveFormat::Safetensors)
    return io::write_safetensors(path, all, options.metadata(), caller);
  parallel::all_or_none(
      all.group,
      [&] {
        if (all.group.rank() != 0) return;
        io::in_file(path, [&] { io::save_torch(path, all.tensors); });
      },
      caller);
}

}  // namespace

StateDict state_dict(const ConstModuleRef& module) { return io::module_state(*module).tensors; }

void save_weights(const ConstModuleRef& module, const std::string& path,
                  const SaveOptions& options) {
  io::in_context("save_weights", path, [&] {
    auto state = io::module_state(*module);
    io::GroupTensors all{state.tensors, options.group()};
    for (const auto& table : state.tables) all.computed.insert(table.name);
    save(path, all, options, "save_weights");
  });
}

void save_tensors(const std::string& path, const StateDict& tensors, const SaveOptions& options) {
  io::in_context("save_tensors", path,
                 [&] { save(path, {tensors, options.group()}, options, "save_tensors"); });
}

}  // namespace posenc
