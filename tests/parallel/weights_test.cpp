// Weights of modules that are split over processes: from whole files, into whole files, and as
// shards in the format of torch.distributed.checkpoint, which Python reads and writes too.
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "io/python.h"
#include "io/support.h"
#include "parallel/split_model.h"
#include "posenc/io/load.h"
#include "posenc/io/safetensors.h"
#include "posenc/io/save.h"
#include "posenc/parallel/gloo.h"
#include "support/rank_threads.h"

namespace posenc::testing {
namespace {

using testing::run_ranks;
using Code = WeightsErrorCode;

SaveOptions shards_of(const RankGroup& group) {
  return SaveOptions().format(SaveFormat::SafetensorsShards).group(group);
}

void save_shards(const std::string& folder, int ranks, double start = 0.5) {
  run_ranks(ranks, [&](const RankGroup& group) {
    SplitModel model(group);
    model.fill(start);
    save_weights(model, folder, shards_of(group));
  });
}

// Loads as each of several processes, which needs no group, and compares with filled models.
void expect_loaded(const std::string& path, double start = 0.5) {
  for (const int ranks : {1, 2, 3, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      SplitModel model(rank, ranks), expected(rank, ranks);
      expected.fill(start);
      load_weights(model, path);
      EXPECT_TRUE(all_bits(model) == all_bits(expected)) << rank << " of " << ranks;
    }
  }
}

TEST(SplitWeights, AreReadFromAWholeFileByRows) {
  const TempDir dir;
  SplitModel whole;
  whole.fill(0.5);
  save_weights(whole, dir / "whole.safetensors");
  save_tensors(dir / "whole.pt", state_dict(whole));
  expect_loaded(dir / "whole.safetensors");
  expect_loaded(dir / "whole.pt");
  for (const bool staged : {false, true}) {
    SplitModel second(1, 2), expected(1, 2);
    expected.fill(0.5);
    load_weights(second, dir / "whole.safetensors", LoadOptions().staged(staged));
    EXPECT_TRUE(all_bits(second) == all_bits(expected));
    second.fill(7.0);
    load_state_dict(second, state_dict(whole), LoadOptions().staged(staged));
    EXPECT_TRUE(all_bits(second) == all_bits(expected));
  }
  // Renamed, transposed in the file, and in another dtype.
  auto tensors = load_tensors(dir / "whole.safetensors");
  StateDict changed;
  for (const auto& item : tensors) {
    const bool turned = item.key() == "table" || item.key() == "output.table";
    changed.insert("m." + item.key(), turned ? item.value().t().to(at::kDouble) : item.value());
  }
  save_tensors(dir / "changed", changed);
  SplitModel second(1, 2), expected(1, 2);
  expected.fill(0.5);
  const KeyMap map = {{KeySource::transposed("table"), "table"},
                      {KeySource::transposed("output.table"), "output.table"}};
  load_weights(second, dir / "changed", LoadOptions().prefix("m.").key_map(map).cast(true));
  EXPECT_TRUE(all_bits(second) == all_bits(expected));
}

TEST(SplitWeights, OfAnotherVocabularyAreRefused) {
  const TempDir dir;
  SplitModel part(0, 2);
  save_tensors(dir / "part", state_dict(part));
  const auto error = error_of([&] { load_weights(part, dir / "part"); });
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(error.what(), "'table' must have shape (7, 16). Got (4, 16)");
}

TEST(SplitWeights, AreSavedWholeByAGroupOnly) {
  const TempDir dir;
  SplitModel whole;
  whole.fill(0.5);
  save_weights(whole, dir / "whole");
  run_ranks(3, [&](const RankGroup& group) {
    SplitModel model(group);
    model.fill(0.5);
    save_weights(model, dir / "c", SaveOptions().group(group));
    const auto alone = error_of([&] { save_weights(model, dir / "alone"); });
    EXPECT_EQ(alone.code(), Code::Unsupported);
    EXPECT_CONTAINS(alone.what(), "SaveOptions().group(group)");
    const auto torch =
        error_of([&] { save_weights(model, dir / "t.pt", SaveOptions().group(group)); });
    EXPECT_EQ(torch.code(), Code::Unsupported);
  });
  EXPECT_EQ(read_bytes(dir / "c"), read_bytes(dir / "whole"));
  EXPECT_EQ(dir.entries(), 2u);
}

TEST(SplitWeights, AsShardsAreReadByAnyNumberOfProcesses) {
  const TempDir dir;
  for (const int ranks : {1, 2, 3, 8}) {
    const std::string folder = dir / std::to_string(ranks);
    save_shards(folder, ranks);
    expect_loaded(folder);
    const auto first = load_safetensors(folder + "/shard-00001-model-00001-of-00001.safetensors");
    EXPECT_EQ(first.metadata.at("DCP_VERSION"), "1.0");
    EXPECT_EQ(first.metadata.at("format"), "pt");
    EXPECT_TRUE(first.tensors.contains("matrix"));
  }
}

// The group that saves is not the one that splits the model.
TEST(SplitWeights, AsShardsOfAnotherGroupAreRefused) {
  const TempDir dir;
  run_ranks(2, [&](const RankGroup& whole_group) {
    const SplitModel model(whole_group);
    const RankGroup alone =
        gloo_group(c10::make_intrusive<c10d::HashStore>(), /*rank=*/0, /*size=*/1);
    const auto error = error_of([&] {
      save_weights(model, dir / ("folder" + std::to_string(whole_group.rank())),
                   SaveOptions().format(SaveFormat::SafetensorsShards).group(alone));
    });
    EXPECT_EQ(error.code(), Code::Module);
    EXPECT_CONTAINS(error.what(), "must be split by rows over the processes of the group");
  });
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(SplitWeights, ShardsGoIntoANewFolder) {
  const TempDir dir;
  save_shards(dir / "c", 3);
  run_ranks(2, [&](const RankGroup& group) {
    SplitModel model(group);
    try {
      save_weights(model, dir / "c", shards_of(group));
      ADD_FAILURE() << "saved";
    } catch (const WeightsError& error) {
      EXPECT_EQ(group.rank(), 0);
      EXPECT_EQ(error.code(), Code::Shard);
      EXPECT_CONTAINS(error.what(), "choose a new folder for each save");
    } catch (const GroupError& error) {
      EXPECT_EQ(error.code(), GroupErrorCode::PeerFailed);
    }
  });
  expect_loaded(dir / "c");
}

TEST(SplitWeights, ShardsThatAreNotAllAreRefused) {
  namespace fs = std::filesystem;
  const TempDir dir;
  const auto refused = [&](const std::string& folder) {
    SplitModel model(0, 2);
    return error_of([&] { load_weights(model, folder); });
  };
  const auto shard = [](const std::string& folder, int number) {
    return fmt::format("{}/shard-{:05}-model-00001-of-00001.safetensors", folder, number);
  };
  const auto changed = [&](const std::string& name, const std::string& info) {
    fs::copy(dir / "whole", dir / name);
    auto file = load_safetensors(shard(dir / name, 2));
    file.metadata["DCP_SHARDING_INFO"] = info;
    save_safetensors(shard(dir / name, 2), file.tensors, file.metadata);
    return refused(dir / name);
  };
  save_shards(dir / "whole", 3);
  fs::copy(dir / "whole", dir / "lacking");
  fs::remove(shard(dir / "lacking", 2));
  EXPECT_EQ(refused(dir / "lacking").code(), Code::Shard);
  EXPECT_CONTAINS(refused(dir / "lacking").what(), "lacks some of its shards");
  fs::copy(dir / "whole", dir / "doubled");
  fs::copy(shard(dir / "doubled", 2), shard(dir / "doubled", 9));
  EXPECT_CONTAINS(refused(dir / "doubled").what(), "has shards that overlap");
  const auto other =
      changed("other", R"({"table":{"saved_offsets":[20,0]},"bias":{"saved_offsets":[3]},
                           "output.table":{"saved_offsets":[3,0]}})");
  EXPECT_CONTAINS(other.what(), "lacks some of its shards");
  for (const char* info : {"[]", R"({"table":{}})", R"({"table":{"saved_offsets":[3]}})",
                           R"({"table":{"saved_offsets":[-3,0]}})",
                           R"({"table":{"saved_offsets":[9000000000000000000,0]}})", "{"}) {
    fs::remove_all(dir / "bad");
    EXPECT_EQ(changed("bad", info).code(), Code::Corrupt) << info;
  }
  fs::create_directory(dir / "empty");
  EXPECT_EQ(refused(dir / "empty").code(), Code::NotRegular);
}

// Python's reader needs no processes of its own to read what several have written.
TEST(SplitWeights, AreReadByPythonFromShards) {
  ASSERT_TRUE(python_has("torch.distributed.checkpoint, safetensors")) << POSENC_PYTHON;
  const TempDir dir;
  SplitModel whole;
  whole.fill(0.5);
  save_weights(whole, dir / "whole.safetensors");
  for (const int ranks : {1, 2, 3}) save_shards(dir / std::to_string(ranks), ranks);
  ASSERT_TRUE(run_python(dir, R"(
import torch
from safetensors.torch import load_file
from torch.distributed import checkpoint
from torch.distributed.checkpoint import HuggingFaceStorageReader
whole = load_file("whole.safetensors")
for ranks in "123":
    found = {name: torch.zeros_like(tensor) for name, tensor in whole.items()}
    checkpoint.load(found, storage_reader=HuggingFaceStorageReader(ranks), no_dist=True)
    for name, tensor in whole.items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor), (ranks, name)
)"));
}

// Written by two processes of Python as DTensors: split by rows, by columns, and replicated.
TEST(SplitWeights, AreReadFromShardsOfPython) {
  ASSERT_TRUE(python_has("torch.distributed.checkpoint, safetensors")) << POSENC_PYTHON;
  const TempDir dir;
  SplitModel whole;
  whole.fill(0.5);
  save_weights(whole, dir / "whole.safetensors");
  write_bytes(dir / "rank.py", R"(
import os, sys, torch
from safetensors.torch import load_file
from torch.distributed import barrier, checkpoint, init_process_group, destroy_process_group
from torch.distributed.checkpoint import HuggingFaceStorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
rank, size = int(sys.argv[1]), int(sys.argv[2])
init_process_group("gloo", init_method="file://" + os.path.abspath(f"store{size}"), rank=rank, world_size=size)
mesh = init_device_mesh("cpu", (size,))
how = {"table": Shard(0), "output.table": Shard(1), "bias": Shard(0), "matrix": Shard(1)}
state = {name: distribute_tensor(tensor, mesh, [how.get(name, Replicate())])
         for name, tensor in load_file("whole.safetensors").items()}
checkpoint.save(state, storage_writer=HuggingFaceStorageWriter(path=f"python{size}", save_distributed=True))
barrier()
destroy_process_group()
os._exit(0)  # Gloo's threads may outlive the interpreter, which then ends with an abort
)");
  ASSERT_TRUE(run_python(dir, R"(
import subprocess, sys
for size in 2, 3:
    ranks = [subprocess.Popen([sys.executable, "-W", "ignore", "rank.py", str(rank), str(size)]) for rank in range(size)]
    assert [rank.wait(120) for rank in ranks] == [0] * size
)"));
  for (const char* size : {"2", "3"}) expect_loaded(dir / ("python" + std::string(size)));
}

}  // namespace
}  // namespace posenc::testing
