// SPDX-License-Identifier: Apache-2.0
// Style is a test: what a reader of this tree may rely on, checked over its own sources.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;  // from the root of the tree
  std::vector<std::string> lines;

  std::string Extension() const { return fs::path(path).extension().string(); }
  bool IsCpp() const { return Extension() == ".cc" || Extension() == ".h"; }
  bool Under(std::string_view folder) const { return path.starts_with(folder); }
  // "#include" targets with the root folder they name, quotes only.
  std::vector<std::string> Includes() const {
    std::vector<std::string> out;
    for (const std::string& line : lines) {
      if (line.starts_with("#include \"")) out.push_back(line.substr(10, line.rfind('"') - 10));
    }
    return out;
  }
};

std::vector<Source> ReadTree() {
  std::vector<Source> out;
  for (const char* root : {"services", "common", "kernels", "proto", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      static const std::set<std::string> kKinds = {".cc", ".h", ".proto", ".cu", ".cuh"};
      if (!entry.is_regular_file() || !kKinds.contains(entry.path().extension())) continue;
      Source source{.path = entry.path().string(), .lines = {}};
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) source.lines.push_back(line);
      out.push_back(std::move(source));
    }
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.path < b.path; });
  return out;
}

const std::vector<Source>& Tree() {
  static const std::vector<Source> tree = ReadTree();
  return tree;
}

// Reports each line that `bad` dislikes, by file and number.
void ExpectNoLine(const std::function<bool(const Source&)>& in_scope,
                  const std::function<bool(const std::string&)>& bad, const std::string& rule) {
  for (const Source& source : Tree()) {
    if (!in_scope(source) || source.path == "tests/tidy_test.cc") continue;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      if (bad(source.lines[i])) {
        ADD_FAILURE() << source.path << ":" << i + 1 << ": " << rule << ": " << source.lines[i];
      }
    }
  }
}

bool Any(const Source&) { return true; }
bool Product(const Source& s) { return s.IsCpp() && !s.Under("tests/"); }
auto Matches(const char* pattern) {
  return [expression = std::regex(pattern)](const std::string& line) {
    return std::regex_search(line, expression);
  };
}

TEST(Tidy, TreeIsThere) { ASSERT_GT(Tree().size(), 50u); }

TEST(Tidy, FilesAreShortEnoughToRead) {
  for (const Source& s : Tree()) {
    EXPECT_LE(s.lines.size(), 400u) << s.path;
    if (s.path.ends_with("/main.cc") && s.Under("services/")) {
      EXPECT_LE(s.lines.size(), 60u) << s.path << ": main.cc only wires";
    }
  }
}

TEST(Tidy, LinesFit) {
  ExpectNoLine(
      Any,
      [](const std::string& line) {
        // Characters, not bytes: continuation bytes do not take a column.
        return std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) >
               100;
      },
      "over 100 columns");
}

// Code inside namespaces is not indented, so a function starts at column 0 and ends with '}' there.
TEST(Tidy, FunctionsAreShortEnoughToRead) {
  const std::regex no_function(
      R"(^(namespace|class|struct|enum|union|extern|constexpr .*= |const .*= )|=\s*\{$)");
  for (const Source& s : Tree()) {
    if (!s.IsCpp() || s.Under("tests/")) continue;
    size_t start = 0;
    for (size_t i = 0; i < s.lines.size(); ++i) {
      const std::string& line = s.lines[i];
      if (!line.empty() && !isspace(line[0]) && line.ends_with("{")) {
        start = std::regex_search(line, no_function) ? 0 : i + 1;
      }
      if (line.starts_with("}") && start != 0) {
        EXPECT_LE(i + 1 - start, 70u) << s.path << ":" << start << ": function too long";
        start = 0;
      }
    }
  }
}

TEST(Tidy, EveryFileSaysItsLicence) {
  for (const Source& s : Tree()) {
    if (!s.IsCpp() || s.lines.empty()) continue;
    EXPECT_EQ(s.lines[0], "// SPDX-License-Identifier: Apache-2.0") << s.path;
  }
}

TEST(Tidy, GuardsFollowThePath) {
  for (const Source& s : Tree()) {
    if (s.Extension() != ".h") continue;
    std::string guard = "SETU_" + s.path + "_";
    for (char& c : guard)
      c = isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(toupper(c)) : '_';
    EXPECT_TRUE(std::find(s.lines.begin(), s.lines.end(), "#ifndef " + guard) != s.lines.end())
        << s.path << " should have the guard " << guard;
  }
}

// Own header first: a header that needs something included before it does not compile.
TEST(Tidy, SourcesIncludeTheirHeaderFirst) {
  for (const Source& s : Tree()) {
    if (s.Extension() != ".cc") continue;
    const std::string header = s.path.substr(0, s.path.size() - 3) + ".h";
    if (!fs::exists(header)) continue;
    const auto includes = s.Includes();
    ASSERT_FALSE(includes.empty()) << s.path;
    EXPECT_EQ(includes[0], header) << s.path;
  }
}

TEST(Tidy, ArrowsOnlyPointDown) {
  const std::map<std::string, std::set<std::string>> may_include = {
      {"kernels", {"kernels", "absl"}},
      {"common", {"common", "kernels", "setu", "opentelemetry", "absl", "google"}},
      {"services", {"services", "common", "kernels", "setu", "absl", "google"}},
  };
  for (const Source& s : Tree()) {
    const std::string layer = s.path.substr(0, s.path.find('/'));
    if (!s.IsCpp() || !may_include.contains(layer)) continue;
    for (const std::string& include : s.Includes()) {
      const std::string target = include.substr(0, include.find('/'));
      if (target == "absl" || target == "gtest") continue;
      EXPECT_TRUE(may_include.at(layer).contains(target)) << s.path << " includes " << include;
      if (layer == "services" && target == "services") {
        const auto room = [](const std::string& p) { return p.substr(0, p.find('/', 9)); };
        EXPECT_EQ(room(include), room(s.path))
            << s.path << " includes another service's " << include;
      }
    }
  }
}

TEST(Tidy, OnlyAdaptersSpeakGrpc) {
  const std::regex allowed(
      R"(^(common/(wire|rpc|worker|kv_transfer)/|services/.*(_service|_client)\.(cc|h)$))");
  for (const Source& s : Tree()) {
    if (!Product(s) || std::regex_search(s.path, allowed)) continue;
    for (const std::string& line : s.lines) {
      EXPECT_FALSE(line.starts_with("#include <grpcpp/") || line.starts_with("#include <grpc/"))
          << s.path << ": " << line;
    }
  }
}

TEST(Tidy, NothingIsThrownOrLeftForLater) {
  ExpectNoLine(Product, Matches(R"(^[^/]*\bthrow\b)"), "errors are absl::Status");
  ExpectNoLine(Any, Matches(R"(\b(TODO|FIXME|XXX|HACK)\b)"), "finish it or file it");
  ExpectNoLine(Any, Matches(R"(\bDISABLED_)"), "a test runs or goes");
  ExpectNoLine(Product, Matches(R"(\bsleep_for\b|\busleep\()"),
               "wait for something, with a deadline");
}

TEST(Tidy, NoGlobals) {
  ExpectNoLine(Product,
               Matches(R"(^(static )?(std::\w+(<.*>)?|int|bool|double|size_t) g_?\w+( =.*)?;)"),
               "no globals");
  ExpectNoLine(Product, Matches(R"(\b\w*(Manager|Util|Utils|Helper)\b)"), "name what it does");
}

// Equal bits need equal arithmetic: only files named after an ISA may use its instructions.
TEST(Tidy, IntrinsicsStayInIsaFiles) {
  for (const Source& s : Tree()) {
    if (!Product(s)) continue;
    const bool isa_file = std::regex_search(s.path, std::regex(R"(_(avx2|avx512|amx)\.(cc|h)$)"));
    for (const std::string& line : s.lines) {
      if (line.find("<immintrin.h>") == std::string::npos) continue;
      EXPECT_TRUE(isa_file || s.path.find("kernels/cpu/") == 0) << s.path << ": " << line;
    }
  }
}

TEST(Tidy, CompilerKeepsTheRulesOfEqualBits) {
  std::stringstream all;
  all << std::ifstream("CMakeLists.txt").rdbuf() << std::ifstream("kernels/CMakeLists.txt").rdbuf();
  EXPECT_NE(all.str().find("-ffp-contract=off"), std::string::npos);
  EXPECT_EQ(all.str().find("-ffast-math"), std::string::npos);
  EXPECT_FALSE(std::regex_search(all.str(), std::regex(R"(\s-march=native)")));
}

TEST(Tidy, TestsMirrorTheTree) {
  for (const Source& s : Tree()) {
    if (!s.Under("common/") || s.Extension() != ".cc") continue;
    const std::string test = "tests/" + s.path.substr(0, s.path.size() - 3) + "_test.cc";
    EXPECT_TRUE(fs::exists(test)) << s.path << " has no " << test;
  }
}

std::vector<std::string> Rooms() {
  std::vector<std::string> rooms = {"kernels", "proto", "deploy", "services", "common", "tests"};
  for (const char* layer : {"common", "services"}) {
    for (const auto& entry : fs::directory_iterator(layer)) {
      if (entry.is_directory()) rooms.push_back(entry.path().string());
    }
  }
  return rooms;
}

TEST(Tidy, EveryRoomHasAShortReadme) {
  for (const std::string& room : Rooms()) {
    std::ifstream in(room + "/README.md");
    ASSERT_TRUE(in.good()) << room << " has no README.md";
    size_t lines = 0;
    for (std::string line; std::getline(in, line);) ++lines;
    // The metrics room's README carries the table made from the catalogue.
    if (room == "common/metrics") continue;
    EXPECT_LE(lines, 40u) << room << "/README.md";
  }
}

TEST(Tidy, ReadmesNamePathsThatExist) {
  const std::regex path_in_ticks(
      R"(`((?:services|common|kernels|proto|tests|deploy|helm)/[\w/.\-]+)`)");
  std::vector<std::string> pages = {"README.md", "CONTRIBUTING.md"};
  for (const std::string& room : Rooms()) pages.push_back(room + "/README.md");
  for (const std::string& page : pages) {
    std::stringstream text;
    text << std::ifstream(page).rdbuf();
    const std::string body = text.str();
    for (std::sregex_iterator it(body.begin(), body.end(), path_in_ticks), end; it != end; ++it) {
      EXPECT_TRUE(fs::exists((*it)[1].str())) << page << " names " << (*it)[1];
    }
  }
}

// A reader asks a script before it is run.
TEST(Tidy, EveryScriptShowsTheCommentItBeginsWith) {
  size_t scripts = 0;
  for (const char* root : {"deploy", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string path = entry.path().string();
      if (entry.path().extension() != ".sh" || path == "deploy/local/help.sh") continue;
      ++scripts;
      std::string comment, shown;
      std::ifstream in(path);
      std::string line;
      for (int i = 0; std::getline(in, line) && line.starts_with("#"); ++i) {
        if (i >= 2) comment += line.substr(std::min<size_t>(line.size(), 2)) + "\n";
      }
      FILE* pipe = popen((path + " --help").c_str(), "r");
      for (int c; (c = fgetc(pipe)) != EOF;) shown += static_cast<char>(c);
      EXPECT_EQ(pclose(pipe), 0) << path;
      EXPECT_EQ(shown, comment) << path;
      EXPECT_NE(comment, "") << path;
    }
  }
  EXPECT_GT(scripts, 5u);
}

}  // namespace
