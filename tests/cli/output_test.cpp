// No command replaces a file that it reads, under whatever name.
#include <torch/types.h>

#include <filesystem>

#include "cli/program.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

namespace fs = std::filesystem;

class Output : public InFolder {
 protected:
  // Expects that the command ends with 1 and that no file in the folder changes.
  void expect_kept(const std::vector<std::string>& command, const std::string& text,
                   const std::string& rule = "the output must not be a file that is read") const {
    SCOPED_TRACE(command[0] + " " + command.back());
    const auto before = contents();
    const auto result = posenc(command);
    expect_refused(result, command[0], rule);
    EXPECT_CONTAINS(result.err, text);
    EXPECT_EQ(contents(), before);
  }
  std::vector<std::string> contents() const {
    std::vector<std::string> all;
    for (const auto& name : names()) {
      all.push_back(name + (fs::is_directory(file(name)) ? "" : ": " + read_bytes(file(name))));
    }
    return all;
  }
};

TEST_F(Output, OfConvertIsNotItsInput) {
  const auto in = safetensors("in", dict({{"a", torch::ones({3})}}));
  expect_kept({"convert", in, in}, in + ": the output must not be a file that is read; choose");
  fs::create_symlink(in, file("link"));
  fs::create_hard_link(in, file("hard"));
  expect_kept({"convert", in, file("link")}, "link: the output must not be");
  expect_kept({"convert", file("link"), in}, "Got " + file("link"));
  expect_kept({"convert", in, file("hard")}, "hard: the output must not be");
  EXPECT_EQ(posenc({"convert", in, file("other")}).status, 0);
  EXPECT_EQ(posenc({"convert", in, file("other")}).status, 0) << "which is there now";
}

TEST_F(Output, OfConvertIsNoShardOfItsIndex) {
  safetensors("m-1.safetensors", dict({{"a", torch::ones({3})}}));
  safetensors("m-2.safetensors", dict({{"b", torch::ones({3})}}));
  text_file("i.json", R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  expect_kept({"convert", file("i.json"), file("m-2.safetensors")}, "m-2.safetensors: the output");
}

TEST_F(Output, OfTheOthersIsNoneOfTheirInputs) {
  const auto ids = safetensors(
      "ids", dict({{"positions", torch::tensor({0})}, {"position_ids", torch::tensor({0})}}));
  expect_kept({"table", "--preset", "whisper", "--dim", "4", "--positions", ids, "--out", ids},
              ids);
  const auto cases = text_file("cases", "[]");
  expect_kept({"table", "--cases", cases, "--out", cases}, cases);
  const auto config = text_file("config", R"({"model_type": "llama", "head_dim": 8})");
  expect_kept({"rotary", "--config", config, "--in", ids, "--out", config}, config);
  expect_kept({"rotary", "--config", config, "--in", ids, "--out", ids}, ids);
}

TEST_F(Output, OfEncodeIsNoFileOfTheModel) {
  fs::create_directory(file("model"));
  safetensors("model/model.safetensors", dict({{"a", torch::ones({3})}}));
  text_file("model/config.json", R"({"model_type": "bert"})");
  const auto ids = safetensors("ids", dict({{"input_ids", torch::tensor({{0}})}}));
  const auto before = read_bytes(file("model/model.safetensors"));
  for (const std::string out : {"model/model.safetensors", "model/config.json", "ids"}) {
    expect_kept({"encode", file("model"), "--in", ids, "--out", file(out)}, out);
  }
  fs::create_directory(file("model/1_Pooling"));
  text_file("model/1_Pooling/config.json", "{}");
  text_file("model/vocab.txt", "a");
  for (const std::string out : {"model/1_Pooling/config.json", "model/vocab.txt"}) {
    expect_kept({"encode", file("model"), "--in", ids, "--out", file(out)}, out,
                "must not be a file of the model's folder");
  }
  EXPECT_EQ(read_bytes(file("model/model.safetensors")), before);
  for (const std::string out : {"model/pytorch_model.bin", "model/../model/pytorch_model.bin"}) {
    expect_kept({"encode", file("model"), "--in", ids, "--out", file(out)}, out,
                "must not have a name that stands for the weights of a model");
    EXPECT_FALSE(fs::exists(file(out)));
  }
  fs::create_directory(file("whole"));
  fs::rename(file("model"), file("whole/0_Transformer"));
  text_file("whole/modules.json", "[]");
  expect_kept(
      {"encode", file("whole/0_Transformer"), "--in", ids, "--out", file("whole/modules.json")},
      "modules.json", "must not be a file of the model's folder");
}

}  // namespace
}  // namespace posenc::testing
