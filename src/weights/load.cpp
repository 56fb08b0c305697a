#include "posenc/weights/load.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "weights/common/file.h"
#include "weights/load/load_all.h"
#include "weights/load/load_plan.h"
#include "weights/load/shard_folder.h"
#include "weights/load/source.h"

namespace posenc {
namespace {

std::unique_ptr<io::TensorSource> open_source(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_unique<io::ShardFolder>(path);
  return std::make_unique<io::FileSource>(path);
}

LoadReport load(torch::nn::Module& module, const io::TensorSource& source,
                const LoadOptions& options) {
  TORCH_CHECK_VALUE(options.adapters().empty() && options.base().empty(),
                    "[LoadOptions] adapters and base must be for the folder of a model, such as "
                    "load_encoder() takes. Got them for a module");
  io::LoadPlan plan(module, source, options);
  if (options.staged()) plan.stage();
  plan.apply();
  if (options.report() != nullptr) *options.report() = plan.report();
  return plan.report();
}

}  // namespace

LoadReport load_weights(const ModuleRef& module, const std::string& path,
                        const LoadOptions& options) {
  return io::in_context("load_weights", path,
                        [&] { return load(*module, *open_source(path), options); });
}

LoadReport load_state_dict(const ModuleRef& module, const StateDict& tensors,
                           const LoadOptions& options) {
  return io::in_context("load_state_dict", "",
                        [&] { return load(*module, io::MemorySource(tensors, *module), options); });
}

StateDict load_tensors(const std::string& path) {
  return io::in_context("load_tensors", path,
                        [&] { return io::all_tensors(io::OpenWeights(path)); });
}

}  // namespace posenc
