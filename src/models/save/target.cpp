#include "models/save/target.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <system_error>

namespace posenc {
namespace {

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code unknown;
  return !a.empty() && std::filesystem::equivalent(a, b, unknown);
}

}  // namespace

void check_target(const std::string& origin, const std::string& folder,
                  const SavePretrainedOptions& options) {
  TORCH_CHECK_VALUE(options.max_shard_bytes() > 0,
                    "[save_pretrained] max_shard_bytes must be positive. Got ",
                    options.max_shard_bytes());
  const bool replaces = is_same_folder(origin, folder) || is_same_folder(options.rest_of(), folder);
  TORCH_CHECK_VALUE(!replaces || options.overwrite(),
                    "[save_pretrained] folder must not be the one that the model was loaded "
                    "from, unless SavePretrainedOptions::overwrite allows it. Got ",
                    folder);
}

}  // namespace posenc
