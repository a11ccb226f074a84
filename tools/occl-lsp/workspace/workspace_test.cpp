// What is looked at again after an edit.
#include "tools/occl-lsp/workspace/workspace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace occl::lsp {
namespace {

const std::string kAlgorithm = "algorithm one(ranks: int = 2) implements allreduce(ranks, 1) {\n"
                               "  let c = reduce(input[0][0], input[1][0]).into(output[0][0]);\n"
                               "  c.copy(output[1][0]);\n"
                               "}\n";

class WorkspaceTest : public ::testing::Test {
protected:
  Document &open(const std::string &name, const std::string &text) {
    const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/" + name;
    std::ofstream(path) << text;
    auto uri = protocol::URIForFile::fromFile(path);
    EXPECT_TRUE(static_cast<bool>(uri));
    workspace.open(*uri, text, 1);
    Document &document = *workspace.find(*uri);
    workspace.analyse(document);
    document.isPublished = true;
    return document;
  }

  /// Puts a text before the document's.
  void edit(const Document &document, const std::string &text) {
    protocol::DidChangeTextDocumentParams change;
    change.textDocument.uri = document.uri;
    change.textDocument.version = document.version + 1;
    change.contentChanges.emplace_back();
    change.contentChanges.back().range = protocol::Range(protocol::Position(0, 0));
    change.contentChanges.back().text = text;
    ASSERT_TRUE(workspace.change(change));
  }

  Workspace workspace;
};

TEST_F(WorkspaceTest, edit_leavesFilesThatDoNotImportIt) {
  Document &edited = open("edited.coll", kAlgorithm);
  const Document &other = open("other.coll", kAlgorithm);
  const Analysis *const before = other.analysis.get();
  edit(edited, "// a remark\n");
  EXPECT_EQ(edited.analysis, nullptr);
  EXPECT_EQ(other.analysis.get(), before);
  const std::vector<Document *> unpublished = workspace.unpublished();
  ASSERT_EQ(unpublished.size(), 1u);
  EXPECT_EQ(unpublished[0], &edited);
  EXPECT_FALSE(workspace.analyse(edited).hasErrors());
}

TEST_F(WorkspaceTest, editOfAnImport_takesAlongWhatImportsIt) {
  Document &imported = open("imported.coll", "function twice(n: int) -> int { return 2 * n; }\n");
  const Document &importing = open("importing.coll", "import \"imported.coll\";\n" + kAlgorithm);
  ASSERT_FALSE(importing.analysis->hasErrors());
  edit(imported, "// a remark\n");
  EXPECT_EQ(importing.analysis, nullptr);
  EXPECT_EQ(workspace.unpublished().size(), 2u);
}

TEST_F(WorkspaceTest, analysis_isMadeOnceForAText) {
  Document &document = open("once.coll", kAlgorithm);
  const Analysis *const first = document.analysis.get();
  EXPECT_EQ(&workspace.analyse(document), first);
  EXPECT_EQ(&workspace.analyse(document), first);
}

} // namespace
} // namespace occl::lsp
