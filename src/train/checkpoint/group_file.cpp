#include "train/checkpoint/group_file.h"

#include <optional>

#include "train/parallel/collectives.h"
#include "weights/safetensors/writer.h"

namespace posenc::io {

void write_group_file(const RankGroup& group, const std::string& path, const GroupTensors& all,
                      const std::map<std::string, std::string>& metadata, const char* caller) {
  std::optional<SafetensorsWriter> writer;
  std::string description;
  parallel::all_or_none(
      group,
      [&] {
        writer.emplace(all.tensors, metadata);
        description = writer->description(all.computed);
      },
      caller);
  parallel::agree_on(group, description, caller);
  parallel::all_or_none(
      group,
      [&] {
        if (group.rank() == 0) writer->write(path);
      },
      caller);
}

}  // namespace posenc::io
