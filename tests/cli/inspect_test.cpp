#include <torch/types.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

using Json = nlohmann::json;

class Inspect : public InFolder {};

std::string real(const std::string& name) { return std::string(POSENC_REAL_FILES) + "/" + name; }

TEST_F(Inspect, SeesWhatPythonSees) {
  std::ifstream stream(real("expected.json"));
  const auto expected = Json::parse(stream);
  ASSERT_GT(expected.size(), 10u);
  for (const auto& [name, tensors] : expected.items()) {
    SCOPED_TRACE(name);
    const auto result = posenc({"inspect", "--json", real(name)});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const auto seen = Json::parse(result.out);
    EXPECT_EQ(seen.size(), 7u);
    EXPECT_EQ(seen.at("file"), real(name));
    EXPECT_TRUE(seen.at("format").is_string());
    const auto by_name = [](const Json& a, const Json& b) { return a.at("name") < b.at("name"); };
    auto ours = seen.at("tensors").get<std::vector<Json>>();
    auto theirs = tensors.get<std::vector<Json>>();
    std::sort(ours.begin(), ours.end(), by_name);
    std::sort(theirs.begin(), theirs.end(), by_name);
    EXPECT_EQ(ours, theirs);
  }
}

// A listing without these would look complete.
TEST_F(Inspect, JsonHasWhatIsNotATensorToo) {
  const auto seen = [](const std::string& path) {
    const auto result = posenc({"inspect", "--json", path});
    EXPECT_EQ(result.status, 0) << result.err;
    return Json::parse(result.out);
  };
  const auto file = seen(text_file(
      "x",
      crafted(
          R"({"__metadata__":{"framework":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
          R"("attn.0":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[4,7]}})",
          "1234567")));
  EXPECT_EQ(file.at("metadata"), Json({{"framework", "pt"}}));
  ASSERT_EQ(file.at("tensors").size(), 1u);
  ASSERT_EQ(file.at("unreadable").size(), 1u);
  EXPECT_EQ(file.at("unreadable")[0].at("name"), "attn.0");
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "F6_E2M3",
                      file.at("unreadable")[0].at("reason").dump());
  EXPECT_EQ(file.at("values"), Json::array());
  const auto training = seen(real("training.pt"));
  const Json epoch = {{"name", "epoch"}, {"value", "3"}};
  const auto values = training.at("values").get<std::vector<Json>>();
  EXPECT_EQ(std::count(values.begin(), values.end(), epoch), 1) << training.at("values");
  EXPECT_EQ(training.at("more_values"), 0);
}

TEST_F(Inspect, TellsTheFormatByContent) {
  const auto format = [](const std::string& name) {
    return Json::parse(posenc({"inspect", "--json", real(name)}).out).at("format");
  };
  EXPECT_EQ(format("dtypes.safetensors"), "safetensors");
  EXPECT_EQ(format("model.safetensors.index.json"), "safetensors index");
  EXPECT_EQ(format("pytorch_model.bin.index.json"), "torch.save");
  EXPECT_EQ(format("state_dict.pt"), "torch.save");
  EXPECT_EQ(format("legacy_dtypes.pt"), "torch.save (legacy)");
  EXPECT_EQ(format("script.pt"), "TorchScript");
  EXPECT_EQ(format("export.pt2"), "torch.export");
}

TEST_F(Inspect, TextShowsTensorsAndValues) {
  const auto result = posenc({"inspect", real("training.pt")});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "training.pt: torch.save, 10 tensors, ", result.out);
  for (const char* part : {"model.weight", "(2, 3)", "float32", "epoch", "3", "a run",
                           "values that are not tensors"}) {
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, part, result.out);
  }
}

TEST_F(Inspect, NamesCannotCommandATerminal) {
  const std::string header =
      R"({"\u001b[2J\u0007\u009b1m":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})";
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  const auto result = posenc({"inspect", text_file("x", bytes + header)});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out.find_first_of("\033\007"), std::string::npos) << result.out;
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "?[2J??1m", result.out);
}

// All rows of a table are as wide as its longest name, so without truncation a file of 1 MB would
// produce gigabytes of text.
TEST_F(Inspect, LongNamesAreCutInText) {
  const std::string name(1'000'000, 'n'), value(300, 'v');
  std::string header = R"({"__metadata__":{"note":")" + value + R"("},")" + name +
                       R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  for (int i = 0; i < 2000; ++i) {
    header += ",\"t" + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  const auto path = text_file("long", crafted(header + "}"));
  const auto result = posenc({"inspect", path});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_LT(result.out.size(), 1'000'000u);
  EXPECT_CONTAINS(result.out, name.substr(0, 100));
  EXPECT_CONTAINS(result.out, "...");
  EXPECT_CONTAINS(result.out, "  note  " + value + "\n") << "a last column pads nothing";
  EXPECT_CONTAINS(posenc({"inspect", "--help"}).out, "120 bytes");
  EXPECT_CONTAINS(posenc({"inspect", "--json", path}).out, name);
}

TEST_F(Inspect, AFullDiskIsNoticed) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto result = run_program(
      {"/bin/sh", "-c",
       std::string(POSENC_CLI) + " inspect --json " + real("dtypes.safetensors") + " >/dev/full"});
  EXPECT_EQ(result.status, 1);
}

TEST_F(Inspect, Refuses) {
  EXPECT_EQ(posenc({"inspect"}).status, 2);
  expect_refused(posenc({"inspect", file("missing")}), "inspect", "No such file");
  expect_refused(posenc({"inspect", "--json", folder_.path().string()}), "inspect",
                 "must hold model.safetensors");
  expect_refused(posenc({"inspect", text_file("x", "GGUF....")}), "inspect", "is a GGUF file");
  expect_refused(posenc({"inspect", text_file("empty", "")}), "inspect", "is empty");
  const std::string name("TransformerSpec\0", 16), version("\6\0\0\0\x10\0", 6);
  expect_refused(posenc({"inspect", text_file("model.bin", version + name + "\1\1\1\1")}),
                 "inspect", "is a model of CTranslate2");
}

}  // namespace
}  // namespace posenc::testing
