#include "posenc/train/save.h"

#include <torch/nn/module.h>

#include "train/checkpoint/group_file.h"
#include "train/parallel/collectives.h"
#include "weights/common/file.h"
#include "weights/common/module_state.h"
#include "weights/save_format.h"

namespace posenc {

void save_weights(const RankGroup& group, const ConstModuleRef& module, const std::string& path,
                  const SaveOptions& options) {
  constexpr const char* kCaller = "save_weights";
  io::in_context(kCaller, path, [&] {
    if (io::save_format(path, options.format()) == SaveFormat::Safetensors) {
      const auto state = io::module_state(*module);
      io::GroupTensors all{state.tensors};
      for (const auto& table : state.tables) all.computed.insert(table.name);
      return io::write_group_file(group, path, all, options.metadata(), kCaller);
    }
    parallel::all_or_none(
        group,
        [&] {
          if (group.rank() == 0) save_weights(module, path, options);
        },
        kCaller);
  });
}

}  // namespace posenc
